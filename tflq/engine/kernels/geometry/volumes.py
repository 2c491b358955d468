"""Windows that slide over volumes (N, D, H, W, C): what the 3-D convolutions share.

Source: LiteRT 2.3 padding.h ComputePadding3DValues; reference/conv3d.h, conv3d_transpose.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from tflq.engine.jit.compiled import Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import float_range
from tflq.engine.kernels.families.ordered_sums import finish, finish_pixels
from tflq.engine.kernels.geometry.windows import Axis, axis
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
        node.check(len(operand.shape) == 5, "number of dimensions", operand, expected=5, got=len(operand.shape))
    node.check(w.shape[channels] == x.shape[4], "channels", w, expected=x.shape[4], got=w.shape[channels])
    if bias is not None:
        count = int(np.prod(bias.shape))
        node.check(count == w.shape[filters], "number of elements", bias, expected=w.shape[filters], got=count)


def data_of(node: Node, at: Window3D, shape: Shape) -> OpData:
    """Return the geometry and the activation's limits."""
    return OpData(at, shape, float_range(node))


@writes("out")
@in_pieces(lambda x, w, bias, window, *_: len(x) * prod(window.out) * w.size, out="nzyx", x="n", window="zyx")
@compiled
def convolve_3d(x: Array, w: Array, bias: Array, window: Window3D, low: Real, high: Real, out: Array) -> None:
    """Compute CONV_3D. `x` N, D, H, W, C; `w` KD, KH, KW, C, O. One float32 sum per output, bias last.

    Prepare guarantees: `window` lies over a volume of x's depth, height and width, `bias` is (O), `out` is (N, out
    positions, O).
    """
    sums = np.empty(w.shape[4], np.float32)
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
                                for c in range(w.shape[3]):
                                    value, weights = x[n, z, y, column, c], w[kz, ky, kx, c]
                                    for o in range(sums.size):
                                        sums[o] += value * weights[o]
                    finish(sums, bias, low, high, out[n, oz, oy, ox])


def convolve_3d_transposed(
    x: Array, w: Array, bias: Array, window: Window3D, low: Real, high: Real, out: Array
) -> None:
    """Compute CONV_3D_TRANSPOSE. `x` N, D, H, W, C; `w` KD, KH, KW, C, O; sums in the order of x's elements."""
    out.fill(0)
    _spread(x, w, window, out)
    finish_pixels(out.reshape(-1, w.shape[4]), bias, low, high)


@writes("out")
@in_pieces(lambda x, w, window, out: x[..., :1].size * w.size, x="nzyx", out="n", window="zyx")
@compiled
def _spread(x: Array, w: Array, window: Window3D, out: Array) -> None:
    """Add every element of `x` through the filter onto `out`.

    Prepare guarantees: x's depth, height and width are the positions of `window`, whose volume is that of `out` (N, D,
    H, W, O).
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
                                        sums[o] += value * weights[o]
