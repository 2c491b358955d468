"""DEPTHWISE_CONV_2D by XNNPACK.

DEPTHWISE_CONV_2D of 8-bit codes by XNNPACK: the reference's sums, scaled by a float32 multiplier.

Operands, options and refusals: tflq/engine/kernels/depthwise_conv_2d.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitDepthwiseConv2DNode, CheckDepthwiseConvolutionParams.

DEPTHWISE_CONV_2D of float32 by XNNPACK. Operands and options: tflq/engine/kernels/depthwise_conv_2d.py.

Chains of fused multiply-adds: tflq/engine/kernels/families/ordered.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitDepthwiseConv2DNode, CheckDepthwiseConvolutionParams.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.engine.kernels import depthwise_conv_2d
from tflq.engine.kernels.delegation import (
    BIAS_OF_CODES,
    BIAS_OF_FLOATS,
    RECORDED_IMAGE,
    UNCLAIMED,
    delegate,
    is_in_file,
    is_quantized,
    is_static,
    meeting,
    needs,
    of_no_narrower_bias,
    of_one_width,
    ranked,
    result,
    scaled_along,
)
from tflq.engine.kernels.depthwise_conv_2d import prepare_quantized, shapes
from tflq.engine.kernels.families.ordered import OpData, convolve_fused, open_range
from tflq.engine.kernels.families.xnnpack import convolution, rescaled, unread, with_fitting_bias
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, promising, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic


@meeting(
    lambda node: node.optional(2) is not None,
    needs(0, is_quantized, ranked(4)),
    needs(1, scaled_along(3), is_in_file, ranked(4)),
    needs(2, *BIAS_OF_CODES),
    result(is_quantized),
    RECORDED_IMAGE,
)
def takes(node: Node) -> bool:
    """Return whether weights and bias are constant, scales per tensor or channel, and the depth multiplier fits."""
    times = int(node.options["depth_multiplier"])
    return times > 0 and node.input(1).shape[3] % times == 0


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

_XNNPACK = (*valid(xnnpack(), *_ROWS), *valid(xnnpack(until="litert-2.1"), *map(unread, _ROWS)))


@meeting(
    lambda node: node.optional(2) is not None,
    needs(0, ranked(4)),
    needs(1, is_static, ranked(4)),
    needs(2, *BIAS_OF_FLOATS),
    RECORDED_IMAGE,
)
def takes_xnnpack_floats(node: Node) -> bool:
    """Return whether filter and bias are constant and the depth multiplier fits."""
    times = int(node.options["depth_multiplier"])
    return times > 0 and node.input(1).shape[3] == times * node.input(0).shape[3]


def prepare_xnnpack_floats(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the taps, or the panels, of a constant filter."""
    at, shape, times = shapes(node)
    data, w = OpData(at, shape, shape[3] // times, open_range(node), (3, 1, 2, 0)), node.input(1).value
    return Prepared((shape,), data if w is None else data.bound(w), convolve_fused)


_ROW = delegate(
    Kernel("DEPTHWISE_CONV_2D", "float32 float32 float32 -> float32", prepare_xnnpack_floats, (1, 6)),
    takes_xnnpack_floats,
)
_REFERENCE = Kernel("DEPTHWISE_CONV_2D", _ROW.types, depthwise_conv_2d.prepare_float, (1, 6))
_ALIKE = of_one_width(takes_xnnpack_floats)

_XNNPACK_FLOATS = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), replace(_ROW, takes=of_no_narrower_bias(takes_xnnpack_floats))),
    *valid(xnnpack("litert-2.1", "litert-2.1", cpu="x86-64"), unread(_ROW, _ALIKE)),
    *valid(xnnpack("litert-1.4", "litert-2.0"), *promising(UNCLAIMED, (unread(_REFERENCE, _ALIKE),))),
    *valid(xnnpack(until="litert-1.0"), *promising(UNCLAIMED, (unread(_REFERENCE, takes_xnnpack_floats),))),
)

#: The rows of all operators above.
KERNELS = (*_XNNPACK, *_XNNPACK_FLOATS)
