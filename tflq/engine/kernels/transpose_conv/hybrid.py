"""TRANSPOSE_CONV, hybrid: float images, quantized on the way, spread through int8 filters.

| operand | shape        | types   | quantization             |
|---------|--------------|---------|--------------------------|
| shape   | 4            | int32   | none; it may be computed |
| w       | O, KH, KW, C | int8    | per tensor or along O    |
| x       | N, H, W, C   | float32 | none                     |
| bias    | O, optional  | float32 |                          |
| y       | N, OH, OW, O | float32 | none                     |

Options: padding, strides, fused activation. Every image is quantized asymmetrically with one scale. Weight zero points
are not looked at.
Source: LiteRT 2.3, transpose_conv.cc Prepare, EvalHybrid; reference/transpose_conv.h HybridTransposeConv.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.contraction import bias_of, require_quantized
from tflq.engine.kernels.families.hybrid import centre_images, channel_scales
from tflq.engine.kernels.families.ordered_sums import finish_pixels
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape
from tflq.engine.kernels.transpose_conv.shapes import shapes
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    window: Window  # of the convolution that is transposed: image is the output here, pixels
    shape: Shape  # of the output
    scale: Array  # of the filters, one a channel, float32
    clamp: NumberClamp


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Repeat one scale along the quantized dimension."""
    at, shape = shapes(node)
    w = node.input(1)
    node.check(shape[0] > 0, "no images", node.input(2))
    require_quantized(node, w)
    return Prepared((shape,), OpData(at, shape, scales(node, w, shape[3]), float_range(node)), evaluate)


def prepare_by_channel(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse one scale for several channels. Source: LiteRT 1.0 transpose_conv.cc Prepare."""
    w = node.input(1)
    require_quantized(node, w)
    q = w.quantization
    assert q is not None  # require_quantized saw to it
    size = w.shape[q.quantized_dimension]
    node.check(len(q.scale) == size, "number of scales", w, expected=size, got=len(q.scale))
    return prepare(node, arithmetic)


def scales(node: Node, w: Operand, channels: int) -> Array:
    """Return one scale a channel."""
    q = w.quantization
    assert q is not None  # require_quantized saw to it
    if len(q.scale) > 1 or w.shape[q.quantized_dimension] == 1:
        return channel_scales(node, w, channels)
    if w.shape[q.quantized_dimension] < channels:
        raise UndefinedResultError(node.op, f"a scale repeated {w.shape[q.quantized_dimension]} times for {channels}")
    return np.full(channels, w.scale, np.float32)


def evaluate(data: OpData, output_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Source: HybridTransposeConv. Rounding: every product to float32, times both scales in turn, added in order."""
    codes, image_scales = centre_images(x)
    out = np.zeros(data.shape, np.float32)
    weights = np.array(w.transpose(1, 2, 3, 0), order="C")
    added = bias_of(bias, data.shape[3], np.float32)
    spread(codes, weights, data.scale, image_scales, data.window, out)
    finish_pixels(out.reshape(-1, data.shape[3]), added, *data.clamp)
    return out


@in_pieces(lambda x, w, *_: x[..., :1].size * w.size, x="nyx", image_scales="n", out="n", window="yx")
@compiled
def spread(x: Array, w: Array, scale: Array, image_scales: Array, window: Window, out: Array) -> None:
    """Spread centred `x` (N, H, W, C) through `w` (KH, KW, C, O), over y, x and channels of the input in order.

    Prepare guarantees: `x` is (N, out_h, out_w, C) of `window`, whose image is that of `out` (N, height, width, O);
    `scale` is (O), `image_scales` (N).
    """
    depth, channels = w.shape[2], w.shape[3]
    for n in range(x.shape[0]):
        image_scale = image_scales[n]
        for y in range(window.out_h):
            for column in range(window.out_w):
                for ky in range(window.kernel_h):
                    oy = y * window.stride_h - window.pad_top + ky
                    if oy < 0 or oy >= window.height:
                        continue
                    for kx in range(window.kernel_w):
                        ox = column * window.stride_w - window.pad_left + kx
                        if ox < 0 or ox >= window.width:
                            continue
                        sums = out[n, oy, ox]
                        for c in range(depth):
                            value = np.int32(x[n, y, column, c])
                            weights = w[ky, kx, c]
                            for o in range(channels):
                                product = np.float32(value * np.int32(weights[o]))
                                sums[o] += np.float32(product * scale[o]) * image_scale


ROWS = (Kernel("TRANSPOSE_CONV", "int32 int8 float32 float32? -> float32", prepare, (1, 5), (0,)),)
