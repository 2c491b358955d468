"""DEPTHWISE_CONV_2D of 8-bit codes by XNNPACK: the reference's sums, scaled by a float32 multiplier.

Operands, options and refusals: tflq/engine/kernels/depthwise_conv_2d/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitDepthwiseConv2DNode, CheckDepthwiseConvolutionParams.
"""

from __future__ import annotations

from tflq.engine.kernels.delegation import (
    delegate,
    has_bias_scales,
    has_filter_scales,
    has_recorded_image,
    has_shape,
    is_quantized,
)
from tflq.engine.kernels.depthwise_conv_2d.reference import prepare_quantized
from tflq.engine.kernels.families.negative_padding import unread
from tflq.engine.kernels.families.xnnpack_scaling import convolution, rescaled, with_fitting_bias
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic


def takes(node: Node) -> bool:
    """Return whether weights and bias are constant, scales per tensor or channel, and the depth multiplier fits."""
    x, w, bias, y = node.input(0), node.input(1), node.optional(2), node.outputs[0]
    times = int(node.options["depth_multiplier"])
    return (
        bias is not None
        and is_quantized(x)
        and is_quantized(y)
        and has_filter_scales(w, 3)
        and has_bias_scales(bias)
        and w.is_constant
        and bias.is_constant
        and has_shape(x, 4)
        and has_shape(w, 4)
        and has_shape(bias, 1, 1)
        and has_recorded_image(node)
        and times > 0
        and w.shape[3] % times == 0
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for scaling and limits."""
    x, w = node.input(0), node.input(1)
    is_by_channel = w.shape[3] == x.shape[3]
    stage = convolution(arithmetic, x, w, is_by_channel=is_by_channel, taps=w.shape[1] * w.shape[2])
    return rescaled(node, prepare_quantized(with_fitting_bias(node), arithmetic), stage, x, w, w.shape[3])


_ROWS = tuple(
    delegate(Kernel("DEPTHWISE_CONV_2D", types, prepare, (1, 6)), takes)
    for types in ("uint8 uint8 int32 -> uint8", "int8 int8 int32 -> int8")
)

KERNELS = (*valid(xnnpack(), *_ROWS), *valid(xnnpack(until="litert-2.1"), *map(unread, _ROWS)))
