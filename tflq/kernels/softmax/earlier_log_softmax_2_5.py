"""LOG_SOFTMAX of 8-bit codes in 2.5's reference resolver: every result is the lowest code, whatever goes in.

Operands, options and refusals: tflq/kernels/softmax/log_softmax.py.
Its constants are never prepared: the multiplier is 0, so that no difference lies above the smallest one that counts.
Source: TensorFlow 2.5 lite/kernels/activations.cc LogSoftmaxPrepare, LogSoftmaxEval.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.softmax.log_softmax import check_quantized
from tflq.kernels.validity import ref
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import type_range


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The lowest code is all there is to prepare."""
    x, _ = check_quantized(node)
    low, _ = type_range(x.type.label)
    return Prepared((x.shape,), low, eval_lowest)


def eval_lowest(low: int, x: Array) -> Array:
    """Source: LogSoftmax. Rounding and overflow: none."""
    return np.full(x.shape, low, x.dtype)


KERNELS = valid(
    ref(until="tf-2.5"), *(Kernel("LOG_SOFTMAX", f"{t} -> {t}", prepare, (1, 2)) for t in ("uint8", "int8"))
)
