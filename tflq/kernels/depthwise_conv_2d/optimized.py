"""DEPTHWISE_CONV_2D int8: the reference's sums; vector code scales eight channels at a time.

Operands, options and refusals: tflq/kernels/depthwise_conv_2d/reference.py.
Source: LiteRT 2.3 optimized/integer_ops/depthwise_conv.h DepthwiseConvGeneral, Quantize (int8).
"""

from __future__ import annotations

from tflq.kernels.depthwise_conv_2d.reference import prepare_quantized
from tflq.kernels.families.vector_blocks import eight_channels, requantizing
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import opt

KERNELS = valid(
    opt(vectors=True),
    Kernel(
        "DEPTHWISE_CONV_2D", "int8 int8|int4 int32? -> int8", requantizing(prepare_quantized, eight_channels), (1, 6)
    ),
)
