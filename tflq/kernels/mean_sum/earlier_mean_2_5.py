"""MEAN of uint8 images in 2.5's reference resolver: as its optimized one has them.

Source: TensorFlow 2.5 lite/kernels/reduce.cc EvalMean; optimized_ops.h Mean (uint8).
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.kernel import valid
from tflq.kernels.mean_sum.optimized_mean_2_5 import KERNELS as OPTIMIZED
from tflq.kernels.validity import ref

KERNELS = valid(ref(until="tf-2.5"), *(row for row in OPTIMIZED if row.signature.makes(TensorType.UINT8)))
