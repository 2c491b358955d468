"""LOG_SOFTMAX of int8 in 2.3: the reference kernel in the only resolver.

Source: TensorFlow 2.3 lite/kernels/activations.cc LogSoftmaxEval.
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.kernel import valid
from tflq.kernels.softmax import log_softmax
from tflq.kernels.validity import opt

KERNELS = valid(opt(until="tf-2.3"), *(row for row in log_softmax.KERNELS if row.signature.makes(TensorType.INT8)))
