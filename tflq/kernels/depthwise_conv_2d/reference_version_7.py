"""DEPTHWISE_CONV_2D of version 7, which int8 activations with int4 filters have: as the full resolver runs it.

The reference resolver ends at version 6. Operands, options and refusals: depthwise_conv_2d.py; how the vector code
scales blocks of channels: tflq/kernels/depthwise_conv_2d/optimized.py. With other types no converter writes version 7.
Source: LiteRT 2.3 register_ref.cc; core/kernels/register.cc; optimized/integer_ops/depthwise_conv.h.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.depthwise_conv_2d.reference import prepare_quantized
from tflq.kernels.families.vector_blocks import CHANNELS as BLOCK
from tflq.kernels.families.vector_blocks import channel_blocks, requantizing
from tflq.kernels.kernel import Kernel
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import HalfUpTwice, StageOf


def full_resolver(arithmetic: Arithmetic) -> StageOf:
    """Whole blocks of eight channels rounded half up twice, the rest as everywhere."""
    return channel_blocks(replace(arithmetic, requantize_simd=HalfUpTwice.of), BLOCK)


KERNELS = (
    Kernel("DEPTHWISE_CONV_2D", "int8 int4 int32? -> int8", requantizing(prepare_quantized, full_resolver), (7, 7)),
)
