"""DEPTHWISE_CONV_2D uint8: scaled by vector code where the kernel for 3 x 3 filters applies, else as the reference.

Operands, options and refusals: tflq/kernels/depthwise_conv_2d/reference.py.
Source: LiteRT 2.3 depthwiseconv_3x3_filter_common.h Fast3x3FilterKernelSupported; depthwiseconv_uint8_3x3_filter.h.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.depthwise_conv_2d.reference import prepare_quantized, shapes
from tflq.kernels.families.contraction import multipliers
from tflq.kernels.geometry.windows import Window
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.multiplier import quantize_multiplier

#: Channels that the kernel takes at a time: it leaves none over.
BLOCK = 8


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The reference's operator with the scaling of the kernel that applies."""
    at, shape, times = shapes(node)
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    _, shift = quantize_multiplier(float(multipliers(node, arithmetic, x, w, bias, y, 1)[0]))
    if times == 1 and shape[3] % BLOCK == 0 and shift <= 0 and is_fast_window(at):
        arithmetic = replace(arithmetic, requantize=arithmetic.requantize_simd)
    return prepare_quantized(node, arithmetic)


def is_fast_window(at: Window) -> bool:
    """3 x 3, equal strides of 1 or 2, and a border of one pixel or none on every side.

    Padding of one pixel may not be exceeded below or to the right; without padding there is none there either. A line
    of several pixels is too thin.
    """
    if (at.kernel_h, at.kernel_w, at.dilation_h, at.dilation_w) != (3, 3, 1, 1):
        return False
    if at.stride_h != at.stride_w or at.stride_h > 2 or at.pad_top != at.pad_left or at.pad_top > 1:
        return False
    below = (at.out_h - 1) * at.stride_h - at.pad_top + at.kernel_h - at.height
    right = (at.out_w - 1) * at.stride_w - at.pad_left + at.kernel_w - at.width
    if max(below, right) > at.pad_top:
        return False
    return at.pad_top == 0 or min(at.height, at.width) > 1 or at.height == at.width


KERNELS = valid(
    opt(cpu="arm64", vectors=True), Kernel("DEPTHWISE_CONV_2D", "uint8 uint8 int32? -> uint8", prepare, (1, 6))
)
