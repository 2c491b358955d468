"""Patches and slabs: what windows see of an image, copied out for products.

Padding is never stored: taps outside the image are left out, or read as 0 where values are centred (code minus zero
point)."""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.microkernels.runs import RUN, run_into
from tflq.typing import Array


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
