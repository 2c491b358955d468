"""QUANTIZE of r1.15 from float32: by vector code in both resolvers, as the optimized kernel that shares the name.

Integers are requantized as in the reference kernel.
Source: TensorFlow r1.15 lite/kernels/quantize.cc; optimized_ops.h AffineQuantize with USE_NEON.
"""

from __future__ import annotations

from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.quantize.optimized import prepare_float
from tflq.engine.kernels.validity import tf1

KERNELS = valid(tf1(), Kernel("QUANTIZE", "float32 -> int8|uint8|int16", prepare_float, (1, 2)))
