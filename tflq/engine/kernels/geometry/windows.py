"""Windows that slide over an image, and their patches.

Windows that slide over an image: output sizes and paddings.

Images are N, H, W, C. Padding is never stored: taps outside the image are left out, or read as 0 where values are
centred (code minus zero point).
Source: LiteRT 2.3 padding.h ComputeOutSizeChecked, ComputePaddingWithOffsetChecked.

The pixels that one tap of a window reads, for all of its positions.

Patches and slabs: what windows see of an image, copied out for products.

Padding is never stored: taps outside the image are left out, or read as 0 where values are centred (code minus zero
point).

Places of elements in flat arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.kernel import Node, Shape
from tflq.engine.microkernels.kernel import RUN, run_into
from tflq.typing import Array


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

    def part(self, positions: slice) -> Axis:
        """Return the axis at those of its positions only."""
        return self._replace(out=positions.stop - positions.start, before=self.before - positions.start * self.stride)


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
        """Return the window with these axes."""
        return cls(
            height=vertical.size,
            width=horizontal.size,
            kernel_h=vertical.kernel,
            kernel_w=horizontal.kernel,
            stride_h=vertical.stride,
            stride_w=horizontal.stride,
            dilation_h=vertical.dilation,
            dilation_w=horizontal.dilation,
            out_h=vertical.out,
            out_w=horizontal.out,
            pad_top=vertical.before,
            pad_left=horizontal.before,
        )

    def part(self, rows: slice, columns: slice | None = None) -> Window:
        """Return the window at those of its positions only."""
        columns = columns or slice(0, self.out_w)
        return self._replace(
            out_h=rows.stop - rows.start,
            pad_top=self.pad_top - rows.start * self.stride_h,
            out_w=columns.stop - columns.start,
            pad_left=self.pad_left - columns.start * self.stride_w,
        )

    @classmethod
    def of_one_tap(cls, height: int, width: int) -> Window:
        """Return the window of an operator that takes every pixel by itself."""
        return cls.over(_one_tap(height), _one_tap(width))

    @property
    def taps(self) -> int:
        """Positions of the kernel."""
        return self.kernel_h * self.kernel_w

    @property
    def is_pointwise(self) -> bool:
        """True if every output pixel sees just the input pixel at its own place."""
        return self.taps == 1 and self.stride_h == self.stride_w == 1 and self.pad_top == self.pad_left == 0


def _one_tap(size: int) -> Axis:
    return Axis(size=size, kernel=1, stride=1, dilation=1, out=size, before=0)


def axis(padding: int, size: int, kernel: int, stride: int, dilation: int) -> Axis | None:
    """Return the geometry along one axis; None if the window does not fit or a parameter makes no sense."""
    if padding not in (Padding.SAME, Padding.VALID) or size < 0 or kernel <= 0 or stride <= 0 or dilation <= 0:
        return None
    reach = (kernel - 1) * dilation + 1
    span = size + stride - (1 if padding == Padding.SAME else reach)
    out = int(span / stride)  # truncates towards zero, as C does: a window a little too large gives 0, not an error
    if out < 0:
        return None
    return Axis(size, kernel, stride, dilation, out, max(0, (out - 1) * stride + reach - size) // 2)


def window(node: Node, image: Shape, kernel: tuple[int, int]) -> Window:
    """Return the window of `node`'s options (padding, strides, any dilations) over `image` (N, H, W, C)."""
    options = node.options
    axes = []
    for letter, size, taps in (("h", image[1], kernel[0]), ("w", image[2], kernel[1])):
        dilation = int(options.get(f"dilation_{letter}_factor", 1))
        stride = int(options[f"stride_{letter}"])
        placed = axis(int(options["padding"]), size, taps, stride, dilation)
        if placed is None:
            node.refuse(
                f"the window does not fit along {letter}",
                expected="a kernel inside the image, positive steps",
                got=f"size {size}, kernel {taps}, stride {stride}, dilation {dilation}",
            )
        axes.append(placed)
    return Window.over(axes[0], axes[1])


def read_tap(x: Array, window: Window, ky: int, kx: int, outside: Any = 0) -> Array:
    """Return what tap (ky, kx) reads of `x` (N, H, W, C), as (N, out_h, out_w, C).

    Beyond the image that is `outside`; None: what lies at its border.
    """
    rows = np.arange(window.out_h) * window.stride_h - window.pad_top + ky * window.dilation_h
    columns = np.arange(window.out_w) * window.stride_w - window.pad_left + kx * window.dilation_w
    read = x[:, rows.clip(0, x.shape[1] - 1)][:, :, columns.clip(0, x.shape[2] - 1)]
    if outside is None:
        return read
    inside = ((rows >= 0) & (rows < x.shape[1]))[:, None] & ((columns >= 0) & (columns < x.shape[2]))
    return np.where(inside[None, :, :, None], read, x.dtype.type(outside))


@writes("out")
@in_pieces(out="r", first_row="r")
@compiled
def patches_into(x: Array, zero_point: Int, window: Window, first_row: Int, first_channel: Int, out: Array) -> None:
    """Write centred patches as rows: out[i] holds taps x channels (ky, kx, c) seen by output pixel first_row + i.

    `x` is N, H, W, C, contiguous; output pixels count through N, out_h, out_w. The channels taken begin at
    `first_channel`; the width of `out` decides their number. Taps outside the image give 0.

    Prepare guarantees: `window` lies over an image of x's height and width, and `out` is (rows, taps * channels); rows
    from `first_row` on lie below N * out_h * out_w, channels from `first_channel` on below C.
    """
    depth = out.shape[1] // (window.kernel_h * window.kernel_w)
    zero = out.dtype.type(zero_point)
    _taps_into(x, zero, out.dtype.type(0), window, first_row, first_channel, depth, out)


def packed_geometry(window: Window, first_channel: int, depth: int) -> Array:
    """Return pack_patches' geometry: a window, and the `depth` channels of the image from `first_channel` on."""
    return np.array([*window, first_channel, depth], np.int64)


@compiled
def pack_patches(
    codes: Array, geometry: Array, first: Int, count: Int, shift: Int, fill: Int, packed: Array, length: Int
) -> None:
    """Write patches less `shift` as rows of a micro-kernel, padding as `fill`: packed[i, :length], i below `count`.

    `codes` is N, H, W, C, contiguous; patch first + i is that of an output pixel, counted through N, out_h, out_w, and
    has `length` values. What `packed` has beyond `length` stays as it is.

    Prepare guarantees: `geometry` is packed_geometry's, its window lies over an image of the height and width of
    `codes`, its channels are in the image; rows first to first + count lie below N * out_h * out_w; `packed` has
    `count` rows of `length` values at least.
    """
    g = geometry
    window = Window(g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11])
    kind = packed.dtype.type
    _taps_into(codes, kind(shift), kind(fill), window, first, g[12], g[13], packed[:count])


@compiled
def _taps_into(
    x: Array, zero: Int, fill: Int, window: Window, first_row: Int, first_channel: Int, depth: Int, out: Array
) -> None:
    """Write the patches of `depth` channels; `zero` and `fill` have the type of `out`, modulo its range.

    Prepare guarantees: as patches_into's, with rows of taps * depth values at least.
    """
    # taps that lie side by side in memory are taken as one run of `step` taps
    step = window.kernel_w if window.dilation_w == 1 and depth == x.shape[3] else 1
    ox = first_row % window.out_w
    oy = first_row // window.out_w % window.out_h
    n = first_row // window.out_w // window.out_h
    i = 0
    while i < out.shape[0]:
        pixels = min(_pixels_inside(window, oy, ox), out.shape[0] - i)
        pixels = _inner_into(x, n, zero, window, oy, ox, pixels, first_channel, step, depth, out, i)
        if pixels == 0:
            _patch_into(x[n], zero, fill, window, oy, ox, first_channel, step, depth, out[i])
            pixels = 1
        i += pixels
        ox += pixels
        if ox == window.out_w:
            ox = 0
            oy += 1
        if oy == window.out_h:
            oy = 0
            n += 1


@compiled
def _pixels_inside(window: Window, oy: Int, ox: Int) -> Int:
    """Return how many pixels of the output from (oy, ox) on, in its row, see no padding."""
    top, left = oy * window.stride_h - window.pad_top, ox * window.stride_w - window.pad_left
    beyond = window.width + window.pad_left - (window.kernel_w - 1) * window.dilation_w
    if top < 0 or left < 0 or top + (window.kernel_h - 1) * window.dilation_h >= window.height or beyond <= 0:
        return 0
    return max(0, min(window.out_w, (beyond + window.stride_w - 1) // window.stride_w) - ox)


@compiled
def _inner_into(
    x: Array,
    n: Int,
    zero: Int,
    window: Window,
    oy: Int,
    ox: Int,
    pixels: Int,
    first_channel: Int,
    step: Int,
    depth: Int,
    out: Array,
    row: Int,
) -> Int:
    """Write patches of up to `pixels` output pixels from (oy, ox) on, which see no padding, and return their number.

    Runs are copied by RUN elements. What is copied too much lies where later runs go, or behind a row's values; pixels
    for which an array has no room for it are left out.

    The caller guarantees: as patches_into's; `out` has rows from `row` on, and runs of `step` taps are contiguous.
    """
    source, target = x.reshape(-1), out.reshape(-1)
    whole = (step * depth + RUN - 1) // RUN * RUN
    top, left = oy * window.stride_h - window.pad_top, ox * window.stride_w - window.pad_left
    begin = ((n * x.shape[1] + top) * x.shape[2] + left) * x.shape[3] + first_channel
    across, down = window.dilation_w * x.shape[3], window.dilation_h * x.shape[2] * x.shape[3]
    on = window.stride_w * x.shape[3]
    last_source = begin + (window.kernel_h - 1) * down + (window.kernel_w - step) * across + whole - on
    last_target = row * out.shape[1] + (window.kernel_h * window.kernel_w - step) * depth + whole - out.shape[1]
    while pixels > 0 and (last_source + pixels * on > source.size or last_target + pixels * out.shape[1] > target.size):
        pixels -= 1
    for pixel in range(pixels):
        at = (row + pixel) * out.shape[1]
        if whole == RUN and step == window.kernel_w:  # few channels: loops of one step would take most of the time
            for ky in range(window.kernel_h):
                run_into(source, begin + pixel * on + ky * down, zero, target, at + ky * step * depth)
            continue
        for ky in range(window.kernel_h):
            for kx in range(0, window.kernel_w, step):
                place = begin + pixel * on + ky * down + kx * across
                for start in range(0, whole, RUN):
                    run_into(source, place + start, zero, target, at + start)
                at += step * depth
    return pixels


@compiled
def _patch_into(
    image: Array,
    zero: Int,
    fill: Int,
    window: Window,
    oy: Int,
    ox: Int,
    first_channel: Int,
    step: Int,
    depth: Int,
    row: Array,
) -> None:
    """Write the patch of one output pixel of an image H, W, C in a row, with padding.

    The caller guarantees: as _inner_into's.
    """
    pixels = image.reshape(image.shape[0], image.shape[1] * image.shape[2])
    top, left = oy * window.stride_h - window.pad_top, ox * window.stride_w - window.pad_left
    at = 0
    for ky in range(window.kernel_h):
        y = top + ky * window.dilation_h
        for kx in range(0, window.kernel_w, step):
            column = left + kx * window.dilation_w
            patch = row[at : at + step * depth]
            at += step * depth
            first, last = max(0, -column), min(step, window.width - column)  # taps of the run inside the image
            patch[:] = fill
            if 0 <= y < window.height and first < last:
                inside = patch[first * depth : last * depth]
                source = pixels[y, (column + first) * image.shape[2] + first_channel :]
                for c in range(inside.size):
                    inside[c] = row.dtype.type(source[c]) - zero


def slab_shape(window: Window, rows: int) -> tuple[int, int, int]:
    """Return (rows, stride_w, columns) of the slab that `rows` output rows see, with dilation and padding.

    Columns whose numbers leave the same remainder by stride_w lie side by side: a tap's elements along an output row
    are then contiguous for any stride.
    """
    height = (rows - 1) * window.stride_h + (window.kernel_h - 1) * window.dilation_h + 1
    width = max(0, window.out_w - 1) * window.stride_w + (window.kernel_w - 1) * window.dilation_w + 1
    return height, window.stride_w, -(-width // window.stride_w)


@writes("out")
@in_pieces(out="r", top="r")
@compiled
def slab_into(x: Array, shift: Int, fill: Int, window: Window, top: Int, times: Int, out: Array) -> None:
    """Write image rows from row `top` on, less `shift`, padding as `fill`: out (*slab_shape, C * times).

    `x` is H, W, C, contiguous; every channel is repeated `times` times.

    Prepare guarantees: `window` lies over an image of x's height and width; rows from `first_row` on lie below out_h.
    """
    for r in range(out.shape[0]):
        y = top + r
        if y < 0 or y >= window.height:
            out[r] = fill
        elif window.stride_w == 1 and times == 1:
            _row_into(x[y].reshape(-1), shift, fill, window.pad_left * x.shape[2], out[r, 0].reshape(-1))
        else:
            _columns_into(x[y], shift, fill, window.pad_left, times, out[r])


@compiled
def _row_into(source: Array, shift: Int, fill: Int, before: Int, out: Array) -> None:
    """Copy a row less `shift`, after `before` elements of padding: one run of memory.

    The caller guarantees: 0 <= `before`. This function guarantees: slices end where `out` ends.
    """
    zero = out.dtype.type(shift)
    out[:before] = fill
    inside = out[before : before + source.size]
    for k in range(inside.size):
        inside[k] = out.dtype.type(source[k]) - zero
    out[before + inside.size :] = fill


@compiled
def _columns_into(source: Array, shift: Int, fill: Int, before: Int, times: Int, out: Array) -> None:
    """Copy a row (W, C) less `shift` as (strides, columns, C * times): columns by remainder, channels repeated.

    The caller guarantees: `out` has C * `times` channels.
    """
    zero = out.dtype.type(shift)
    for phase in range(out.shape[0]):
        for i in range(out.shape[1]):
            target = out[phase, i]
            column = i * out.shape[0] + phase - before
            if column < 0 or column >= source.shape[0]:
                target[:] = fill
                continue
            values = source[column]
            for m in range(times):
                for c in range(values.size):
                    target[c * times + m] = out.dtype.type(values[c]) - zero


def flat_places(extents: Shape, steps: Sequence[int]) -> Array:
    """Return the sums of steps at all places of a grid, in order, int64, of length prod(extents)."""
    sums = np.zeros(1, np.int64)
    for extent, step in zip(extents, steps, strict=True):
        sums = (sums[:, None] + np.arange(extent, dtype=np.int64) * step).reshape(-1)
    return sums


def broadcast_steps(shape: Shape, out: Shape) -> tuple[int, ...]:
    """Return the steps along the axes of `out` through a contiguous array of `shape` that is broadcast to it."""
    steps, step = [0] * len(out), 1
    for axis in range(1, len(shape) + 1):
        steps[-axis] = step if shape[-axis] > 1 else 0
        step *= shape[-axis]
    return tuple(steps)
