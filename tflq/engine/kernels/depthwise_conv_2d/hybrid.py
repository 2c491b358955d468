"""DEPTHWISE_CONV_2D, hybrid: float images, quantized on the way, against int8 filters.

| operand | shape            | types   | quantization    |
|---------|------------------|---------|-----------------|
| x       | N, H, W, C       | float32 | none            |
| w       | 1, KH, KW, C * M | int8    | along C * M     |
| bias    | C * M, optional  | float32 |                 |
| y       | N, OH, OW, C * M | float32 | none            |

Options: padding, strides, dilations, depth_multiplier, fused activation. Every image is quantized asymmetrically with
one scale. A depth_multiplier that differs from the shapes is refused, and so are fewer scales than channels. Weight
zero points are not looked at.
Source: LiteRT 2.3, depthwise_conv.cc Prepare, EvalHybridPerChannel;
reference/integer_ops/depthwise_conv.h DepthwiseConvHybridPerChannel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.depthwise_conv_2d.shapes import shapes
from tflq.engine.kernels.families.activation import clamp_in_place, float_range
from tflq.engine.kernels.families.contraction import bias_of, require_quantized
from tflq.engine.kernels.families.hybrid import centre_images, channel_scales
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    window: Window  # pixels
    shape: Shape  # of the output
    scale: Array  # of the filters, one a channel, float32
    clamp: NumberClamp


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require scales along the last dimension."""
    at, shape, times = shapes(node)
    w = node.input(1)
    node.check(shape[0] > 0, "no images", node.input(0))
    require_quantized(node, w)
    said = int(node.options["depth_multiplier"])
    if said != times:
        raise UndefinedResultError(node.op, f"depth_multiplier is {said}, the shapes give {times}")
    return Prepared((shape,), OpData(at, shape, channel_scales(node, w, shape[3]), float_range(node)), evaluate)


def evaluate(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: DepthwiseConvHybridPerChannel. Rounding: sum to float32, times the product of the scales, then bias."""
    codes, scales = centre_images(x)
    sums = np.zeros(data.shape, np.int32)
    accumulate(codes, np.ascontiguousarray(w[0]), data.window, sums)
    out = sums.astype(np.float32)
    out *= (scales[:, None] * data.scale)[:, None, None, :]
    if bias is not None:
        out += bias_of(bias, data.shape[3], np.float32)
    return clamp_in_place(out, *data.clamp)


@in_pieces(lambda x, w, window, sums: len(x) * window.out_h * window.out_w * w.size, sums="nyx", x="n", window="yx")
@compiled
def accumulate(x: Array, w: Array, window: Window, sums: Array) -> None:
    """Add centred `x` (N, H, W, C) times `w` (KH, KW, C * M) to sums (N, OH, OW, C * M), taps inside only.

    Prepare guarantees: these shapes, that `window` lies over an image of x's height and width, and C > 0.
    """
    channels = w.shape[2]
    times = channels // x.shape[3]
    for n in range(sums.shape[0]):
        for oy in range(window.out_h):
            for ox in range(window.out_w):
                total = sums[n, oy, ox]
                for ky in range(window.kernel_h):
                    y = oy * window.stride_h - window.pad_top + ky * window.dilation_h
                    if y < 0 or y >= window.height:
                        continue
                    for kx in range(window.kernel_w):
                        column = ox * window.stride_w - window.pad_left + kx * window.dilation_w
                        if column < 0 or column >= window.width:
                            continue
                        values, weights = x[n, y, column], w[ky, kx]
                        if times == 1:
                            for o in range(channels):
                                total[o] += np.int32(values[o]) * np.int32(weights[o])
                        else:
                            for o in range(channels):
                                total[o] += np.int32(values[o // times]) * np.int32(weights[o])


ROWS = (Kernel("DEPTHWISE_CONV_2D", "float32 int8 float32? -> float32", prepare, (1, 6)),)
