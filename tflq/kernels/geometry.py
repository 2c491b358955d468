"""Windows that slide over an image: output sizes, paddings, and the patches that they cut out.

Images are N, H, W, C. Padding is never stored: taps outside the image are left out, or read as 0 where values are
centred (code minus zero point).
Source: LiteRT 2.3 padding.h ComputeOutSizeChecked, ComputePaddingWithOffsetChecked.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from tflq.kernels.kernel import Array, Node, Shape
from tflq.numerics.compiled import Int, compiled


class Padding(IntEnum):
    """How the border is treated, with the schema's numbers."""

    SAME = 0
    VALID = 1


class Axis(NamedTuple):
    """One axis of a window: sizes, stride, dilation and padding in pixels. `before` is the padding at the low end."""

    size: int
    kernel: int
    stride: int
    dilation: int
    out: int
    before: int


class Window(NamedTuple):
    """A window over an image of height x width; everything in pixels. Read by compiled loops."""

    height: int
    width: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int
    out_h: int
    out_w: int
    pad_top: int
    pad_left: int

    @classmethod
    def over(cls, vertical: Axis, horizontal: Axis) -> Window:
        """The window with these axes."""
        v, h = vertical, horizontal
        return cls(
            v.size, h.size, v.kernel, h.kernel, v.stride, h.stride, v.dilation, h.dilation, v.out, h.out, v.before,
            h.before,
        )  # fmt: skip

    @property
    def taps(self) -> int:
        """Positions of the kernel."""
        return self.kernel_h * self.kernel_w

    @property
    def is_pointwise(self) -> bool:
        """Whether every output pixel sees just the input pixel at its own place."""
        return self.taps == 1 and self.stride_h == self.stride_w == 1 and self.pad_top == self.pad_left == 0


def axis(padding: int, size: int, kernel: int, stride: int, dilation: int) -> Axis | None:
    """The geometry along one axis; None where the window does not fit or a parameter makes no sense."""
    if padding not in (Padding.SAME, Padding.VALID) or size < 0 or kernel <= 0 or stride <= 0 or dilation <= 0:
        return None
    reach = (kernel - 1) * dilation + 1
    span = size + stride - (1 if padding == Padding.SAME else reach)
    out = int(span / stride)  # truncates towards zero, as C does: a window a little too large gives 0, not an error
    if out < 0:
        return None
    return Axis(size, kernel, stride, dilation, out, max(0, (out - 1) * stride + reach - size) // 2)


def window(node: Node, image: Shape, kernel: tuple[int, int]) -> Window:
    """The window of `node`'s options (padding, strides, dilations if it has them) over `image` (N, H, W, C)."""
    options = node.options
    axes = []
    for letter, size, taps in (("h", image[1], kernel[0]), ("w", image[2], kernel[1])):
        dilation = int(options.get(f"dilation_{letter}_factor", 1))
        stride = int(options[f"stride_{letter}"])
        found = axis(int(options["padding"]), size, taps, stride, dilation)
        if found is None:
            node.refuse(
                f"the window does not fit along {letter}", expected="a kernel inside the image, positive steps",
                got=f"size {size}, kernel {taps}, stride {stride}, dilation {dilation}",
            )  # fmt: skip
        axes.append(found)
    return Window.over(axes[0], axes[1])


@compiled
def patches_into(x: Array, zero_point: Int, window: Window, first_row: Int, first_channel: Int, out: Array) -> None:
    """Centred patches as rows: out[i] holds taps x channels (ky, kx, c) seen by output pixel first_row + i.

    `x` is N, H, W, C, contiguous; output pixels count through N, out_h, out_w. The channels taken begin at
    `first_channel`; the width of `out` says how many. Taps outside the image give 0.
    """
    depth = out.shape[1] // (window.kernel_h * window.kernel_w)
    zero = out.dtype.type(zero_point)
    pixels = x.reshape(x.shape[0], x.shape[1], x.shape[2] * x.shape[3])
    # taps that lie side by side in memory are taken as one run of `step` taps
    step = window.kernel_w if window.dilation_w == 1 and depth == x.shape[3] else 1
    for i in range(out.shape[0]):
        row = first_row + i
        ox = row % window.out_w
        above = row // window.out_w
        top = (above % window.out_h) * window.stride_h - window.pad_top
        left = ox * window.stride_w - window.pad_left
        n = above // window.out_h
        at = 0
        for ky in range(window.kernel_h):
            y = top + ky * window.dilation_h
            for kx in range(0, window.kernel_w, step):
                column = left + kx * window.dilation_w
                patch = out[i, at : at + step * depth]
                at += step * depth
                first, last = max(0, -column), min(step, window.width - column)  # taps of the run inside the image
                if y < 0 or y >= window.height or first >= last:
                    patch[:] = 0
                    continue
                if first > 0 or last < step:
                    patch[:] = 0
                inside = patch[first * depth : last * depth]
                source = pixels[n, y, (column + first) * x.shape[3] + first_channel :]
                for c in range(inside.size):
                    inside[c] = out.dtype.type(source[c]) - zero


def slab_shape(window: Window, rows: int) -> Shape:
    """(rows, stride_w, columns) of the slab that `rows` output rows see, dilation and padding included.

    Columns whose numbers leave the same remainder by stride_w lie side by side: what a tap sees along an output row is
    then contiguous, whatever the stride.
    """
    seen = (rows - 1) * window.stride_h + (window.kernel_h - 1) * window.dilation_h + 1
    width = max(0, window.out_w - 1) * window.stride_w + (window.kernel_w - 1) * window.dilation_w + 1
    return seen, window.stride_w, -(-width // window.stride_w)


@compiled
def slab_into(x: Array, zero_point: Int, window: Window, first_row: Int, times: Int, out: Array) -> None:
    """Centred image rows from the first that output row `first_row` sees, padding as 0: out (*slab_shape, C * times).

    `x` is H, W, C, contiguous; every channel is repeated `times` times.
    """
    top = first_row * window.stride_h - window.pad_top
    for r in range(out.shape[0]):
        y = top + r
        if y < 0 or y >= window.height:
            out[r] = 0
        elif window.stride_w == 1 and times == 1:
            _row_into(x[y].reshape(-1), zero_point, window.pad_left * x.shape[2], out[r, 0].reshape(-1))
        else:
            _columns_into(x[y], zero_point, window.pad_left, times, out[r])


@compiled
def _row_into(source: Array, zero_point: Int, before: Int, out: Array) -> None:
    """A centred row, after `before` elements of padding: one run of memory."""
    zero = out.dtype.type(zero_point)
    out[:before] = 0
    inside = out[before : before + source.size]
    for k in range(inside.size):
        inside[k] = out.dtype.type(source[k]) - zero
    out[before + inside.size :] = 0


@compiled
def _columns_into(source: Array, zero_point: Int, before: Int, times: Int, out: Array) -> None:
    """A centred row (W, C) as (strides, columns, C * times): columns by their number's remainder, channels repeated."""
    zero = out.dtype.type(zero_point)
    for phase in range(out.shape[0]):
        for i in range(out.shape[1]):
            target = out[phase, i]
            column = i * out.shape[0] + phase - before
            if column < 0 or column >= source.shape[0]:
                target[:] = 0
                continue
            values = source[column]
            for m in range(times):
                for c in range(values.size):
                    target[c * times + m] = out.dtype.type(values[c]) - zero
