"""Windows that slide over volumes, and elements moved apart.

Windows that slide over volumes (N, D, H, W, C): what the 3-D convolutions share.

Source: LiteRT 2.3 padding.h ComputePadding3DValues; reference/conv3d.h, conv3d_transpose.h.

Elements moved apart and given a border: interior and edge padding, where negative edges cut.

Source: LiteRT 2.3, stablehlo_pad.cc PadData; dilate.cc DilationRunner; stablehlo_reduce_window.cc DilateData,
PadCropData.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, writes
from tflq.engine.jit.pieces import InPieces, in_pieces
from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.ordered import finish
from tflq.engine.kernels.geometry.windows import Axis, Window, axis
from tflq.engine.kernels.kernel import Node, Operand, Shape
from tflq.engine.numerics.codes import NumberClamp
from tflq.typing import Array


class Window3D(NamedTuple):
    """The window along depth, height and width. Read by compiled loops."""

    d: Axis
    h: Axis
    w: Axis

    @property
    def out(self) -> Shape:
        """Positions of the window."""
        return self.d.out, self.h.out, self.w.out

    @classmethod
    def of_image(cls, at: Window) -> Window3D:
        """Return a window over an image as one over a volume of depth 1."""
        height = Axis(at.height, at.kernel_h, at.stride_h, at.dilation_h, at.out_h, at.pad_top)
        width = Axis(at.width, at.kernel_w, at.stride_w, at.dilation_w, at.out_w, at.pad_left)
        return cls(Axis(1, 1, 1, 1, 1, 0), height, width)

    def part(self, *positions: slice) -> Window3D:
        """Return the window at those of its positions only."""
        return Window3D(*(axis.part(at) for axis, at in zip(self, positions, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of both convolutions."""

    window: Window3D  # of the convolution, or of the one that is transposed
    shape: Shape  # of the output
    clamp: NumberClamp


def window(node: Node, volume: Shape, kernel: Shape) -> Window3D:
    """Return the window of `node`'s options over `volume` (D, H, W). One that does not fit has no position."""
    axes = []
    for letter, size, taps in zip("dhw", volume, kernel, strict=True):
        stride, dilation = (int(node.options[name]) for name in (f"stride_{letter}", f"dilation_{letter}_factor"))
        node.check(stride > 0 and dilation > 0, f"steps along {letter}", expected="above 0", got=(stride, dilation))
        placed = axis(int(node.options["padding"]), size, taps, stride, dilation)
        axes.append(placed or Axis(size, taps, stride, dilation, 0, 0))
    return Window3D(*axes)


def check_operands(node: Node, x: Operand, w: Operand, channels: int, filters: int, bias: Operand | None) -> None:
    """Refuse operands of other ranks or channel counts; `channels` and `filters` are the filter's."""
    for operand in (x, w):
        require_rank(node, operand, 5)
    node.check(w.shape[channels] == x.shape[4], "channels", w, expected=x.shape[4], got=w.shape[channels])
    if bias is not None:
        count = int(np.prod(bias.shape))
        node.check(count == w.shape[filters], "number of elements", bias, expected=w.shape[filters], got=count)


def data_of(node: Node, at: Window3D, shape: Shape) -> OpData:
    """Return the geometry and the activation's limits."""
    return OpData(at, shape, float_range(node))


@writes("out")
@in_pieces(
    lambda x, w, bias, window, *_: len(x) * prod(window.out) * w.size,
    frees_threads=True,
    out="nzyx",
    x="n",
    window="zyx",
)
@compiled
def convolve(
    x: Array, w: Array, bias: Array, window: Window3D, filters: int, low: Real, high: Real, out: Array
) -> None:
    """Compute CONV_3D, and CONV_2D with a depth of 1. `x` N, D, H, W, C; `w` KD, KH, KW, C/G, O; `filters` output
    channels a group. One float32 sum per output, bias last.

    Prepare guarantees: `window` lies over a volume of x's depth, height and width, `bias` is (O), `out` is (N, out
    positions, O); C is a multiple of w's fourth dimension, O = groups * `filters`.
    """
    channels_in, channels = w.shape[3], w.shape[4]
    sums = np.empty(channels, np.float32)
    depth, height, width = window.d, window.h, window.w
    for n in range(out.shape[0]):
        for oz in range(depth.out):
            for oy in range(height.out):
                for ox in range(width.out):
                    sums[:] = 0
                    for kz in range(depth.kernel):
                        z = oz * depth.stride - depth.before + kz * depth.dilation
                        if z < 0 or z >= depth.size:
                            continue
                        for ky in range(height.kernel):
                            y = oy * height.stride - height.before + ky * height.dilation
                            if y < 0 or y >= height.size:
                                continue
                            for kx in range(width.kernel):
                                column = ox * width.stride - width.before + kx * width.dilation
                                if column < 0 or column >= width.size:
                                    continue
                                values, taps = x[n, z, y, column], w[kz, ky, kx]
                                for first in range(0, channels, filters):
                                    base, part = first // filters * channels_in, sums[first : first + filters]
                                    for c in range(channels_in):
                                        value, weights = values[base + c], taps[c, first : first + filters]
                                        for o in range(filters):
                                            part[o] += value * weights[o]
                    finish(sums, bias, low, high, out[n, oz, oy, ox])


@compiled
def product(value: Real, weight: Real, scale: Real, image_scale: Real) -> Real:
    """Return value * weight. Rounding: once."""
    return value * weight


@compiled
def scaled_product(value: Int, weight: Int, scale: Real, image_scale: Real) -> Real:
    """Return the product of codes times both scales. Rounding: to float32, then once for each scale."""
    return np.float32(np.float32(np.int32(value) * np.int32(weight)) * scale) * image_scale


#: The name that `spreading` replaces.
multiply: Any = None


@cache
def spreading(function: Compiled[..., Any]) -> InPieces:
    """Return the loop (x, w, scale, image_scales, window, out) that adds x through the filter onto `out`.

    `x` N, D, H, W, C; `w` KD, KH, KW, C, O; `scale` (O) and `image_scales` (N) go to `function` with each pair.
    """
    return _spread.bind(multiply=function)  # type: ignore[return-value]


def spread_floats(x: Array, w: Array, window: Window3D, out: Array) -> None:
    """Add products of floats onto `out`, in the order of x's elements."""
    spreading(product)(x, w, np.ones(w.shape[4], np.float32), np.ones(len(x), np.float32), window, out)


@writes("out")
@in_pieces(lambda x, w, *_: x[..., :1].size * w.size, x="nzyx", image_scales="n", out="n", window="zyx")
@compiled
def _spread(x: Array, w: Array, scale: Array, image_scales: Array, window: Window3D, out: Array) -> None:
    """Add every element of `x` through the filter onto `out`.

    Prepare guarantees: x's depth, height and width are the positions of `window`, whose volume is that of `out` (N, D,
    H, W, O); there is a scale for each channel of it and for each image.
    """
    depth, height, width = window.d, window.h, window.w
    for n in range(x.shape[0]):
        for z in range(depth.out):
            for y in range(height.out):
                for column in range(width.out):
                    for kz in range(depth.kernel):
                        oz = z * depth.stride - depth.before + kz * depth.dilation
                        if oz < 0 or oz >= depth.size:
                            continue
                        for ky in range(height.kernel):
                            oy = y * height.stride - height.before + ky * height.dilation
                            if oy < 0 or oy >= height.size:
                                continue
                            for kx in range(width.kernel):
                                ox = column * width.stride - width.before + kx * width.dilation
                                if ox < 0 or ox >= width.size:
                                    continue
                                sums = out[n, oz, oy, ox]
                                for c in range(w.shape[3]):
                                    value, weights = x[n, z, y, column, c], w[kz, ky, kx, c]
                                    for o in range(sums.size):
                                        sums[o] += multiply(value, weights[o], scale[o], image_scales[n])


@dataclass(frozen=True, slots=True, eq=False)
class DilatedInput:
    """Where elements go: along each dimension, number i to low + i * step of `shape`."""

    shape: Shape  # of the output
    target: tuple[slice, ...]
    source: tuple[slice, ...]


def spread(shape: Shape, low: Shape, high: Shape, steps: Shape) -> DilatedInput:
    """Return elements `steps` apart, `low` and `high` places before and behind them. Sizes may be negative."""
    sizes, target, source = [], [], []
    for size, before, behind, step in zip(shape, low, high, steps, strict=True):
        out = before + (size - 1) * step + 1 + behind if size else before + behind
        first = max(0, -(before // step))  # the first element at or behind place 0
        last = min(size, -(-(out - before) // step))  # the first one behind the end
        last = max(first, last)
        start = before + first * step
        sizes.append(out)
        source.append(slice(first, last))
        target.append(slice(start, start + (last - first - 1) * step + 1, step) if last > first else slice(0, 0))
    return DilatedInput(tuple(sizes), tuple(target), tuple(source))


def move_apart(data: DilatedInput, x: Array, value: Any) -> Array:
    """Return the elements at their places, with `value` everywhere else."""
    out = np.full(data.shape, value, x.dtype)
    out[data.target] = x[data.source]
    return out
