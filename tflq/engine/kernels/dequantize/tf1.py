"""DEQUANTIZE of r1.15 on 8 bits: by vector code in both resolvers, as the optimized kernel that shares the name.

Source: TensorFlow r1.15 lite/kernels/dequantize.cc; optimized_ops.h Dequantize with USE_NEON.
"""

from __future__ import annotations

from tflq.engine.kernels.dequantize.optimized import prepare_dequantize
from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.validity import tf1

KERNELS = valid(tf1(), Kernel("DEQUANTIZE", "int8|uint8|int16 -> float32", prepare_dequantize, (1, 4)))
