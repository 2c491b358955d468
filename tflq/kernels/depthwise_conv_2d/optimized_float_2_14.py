"""DEPTHWISE_CONV_2D of float32 up to 2.14, whose build for x86-64 has no vector code of its own.

Source: TensorFlow 2.14 optimized/depthwiseconv_float.h DepthwiseConvImpl without NEON.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.depthwise_conv_2d.optimized_float import BUFFER, held_by
from tflq.kernels.depthwise_conv_2d.optimized_float import KERNELS as LATER
from tflq.kernels.kernel import valid
from tflq.kernels.validity import opt

#: More than a buffer ever holds.
NEVER = BUFFER + 1

KERNELS = valid(opt(until="tflite-2.14"), *(replace(row, prepare=held_by(NEVER)) for row in LATER))
