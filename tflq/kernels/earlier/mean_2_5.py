"""MEAN of uint8 images in 2.5's reference resolver: as its optimized one has them.

Source: TensorFlow 2.5 lite/kernels/reduce.cc EvalMean; optimized_ops.h Mean (uint8).
"""

from __future__ import annotations

from tflq.ir import TensorType
from tflq.kernels.optimized.mean_2_5 import KERNELS as OPTIMIZED

KERNELS = tuple(row for row in OPTIMIZED if row.signature.makes(TensorType.UINT8))
