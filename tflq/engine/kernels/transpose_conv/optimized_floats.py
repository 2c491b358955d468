"""TRANSPOSE_CONV of float32 by the optimized resolver, on x86-64: Eigen multiplies pixels by the filter, then parts are
added where their taps fall.

Operands, options and refusals: tflq/engine/kernels/transpose_conv/reference.py.
Source: LiteRT 2.3 optimized_ops.h TransposeConvV2 (float), Col2im, BiasAdd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import clamp_in_place, float_range
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.transpose_conv.shapes import shapes
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics import eigen
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    window: Window  # of the convolution that is transposed: image is the output here, pixels
    shape: Shape  # of the output
    clamp: NumberClamp
    cache: int  # bytes


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare geometry and clamp."""
    at, shape = shapes(node)
    data = OpData(at, shape, float_range(node), arithmetic.first_level_cache)
    depth, taps = node.input(1).shape[3], at.kernel_h * at.kernel_w * shape[3]
    return Prepared((shape,), data, evaluate, scratch=4 * taps * (at.out_h * at.out_w + depth))


def evaluate(data: OpData, output_shape: Array, w: Array, x: Array, bias: Array | None = None) -> Array:
    """Rounding: product and sum apart in Eigen's order of channels, then parts in the order of pixels, bias last."""
    columns = np.array(w.transpose(3, 1, 2, 0), order="C").reshape(w.shape[3], -1)
    out = np.zeros(data.shape, np.float32)
    for image, sums in zip(np.ascontiguousarray(x), out, strict=True):
        rows = image.reshape(-1, image.shape[-1])
        _scatter(eigen.product(columns, rows, cache=data.cache), 0, data.window, sums)
    if bias is not None:
        out += bias.reshape(-1)
    return clamp_in_place(out, *data.clamp)


@in_pieces(parts="r", first_pixel="r")
@compiled
def _scatter(parts: Array, first_pixel: Int, window: Window, sums: Array) -> None:
    """Add parts[i] (taps x channels), made by input pixel first_pixel + i, where its taps fall.

    Eval guarantees: `sums` is (height, width, channels) of `window`, a row of `parts` has all taps of all channels.
    """
    channels = sums.shape[2]
    for i in range(parts.shape[0]):
        pixel = first_pixel + i
        top = pixel // window.out_w * window.stride_h - window.pad_top
        left = pixel % window.out_w * window.stride_w - window.pad_left
        for y in range(max(top, 0), min(top + window.kernel_h, window.height)):
            for column in range(max(left, 0), min(left + window.kernel_w, window.width)):
                at = ((y - top) * window.kernel_w + column - left) * channels
                for c in range(channels):
                    sums[y, column, c] += parts[i, at + c]


KERNELS = valid(
    opt("litert-1.0", cpu="x86-64"),
    Kernel("TRANSPOSE_CONV", "int32 float32 float32 float32? -> float32", prepare, (1, 5), (0,)),
)
