"""Loops over an image for sums over taps, channel by channel: in registers where there is a kernel for it, or plain."""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.geometry.windows import Window, slab_into, slab_shape
from tflq.engine.kernels.kernel import Call
from tflq.engine.microkernels.taps import SLACK, TapSums, lines_into
from tflq.typing import Array

#: How many taps one pass over the channels takes; taps are filled up with weights of 0.
TAPS_AT_ONCE = 9


def convolution(taps: TapSums, x: Array, window: Window, times: int, zero_point: int, rows: int, out: Array) -> Call:
    """Return the call that fills `out` (N, out_h, out_w, C * times) with sums over taps of codes x (N, H, W, C).

    Both are contiguous, `window` lies over an image of x's height and width, and padding is `zero_point`. A slab holds
    what `rows` output rows see. Codes are passed as unsigned ones, so that one function serves all types of a size.
    """
    return convolve_into.bound(
        taps.line,
        x.view(f"u{x.itemsize}"),
        window,
        slab_shape(window, rows),
        times,
        zero_point % (1 << 8 * x.itemsize),
        rows,
        taps.offsets,
        taps.weights,
        taps.constants,
        *taps.limits,
        out.view(f"u{out.itemsize}"),
    )


def _passes(x: Array, window: Window, times: int, offsets: Array) -> int:
    """Return the passes of a scalar loop that take about as long, see pieces."""
    return int(x.shape[0] * window.out_h * window.out_w * x.shape[3] * times * (8 + offsets.size)) >> 3


@writes("out")
@in_pieces(
    lambda kernel, x, window, slab_size, times, fill, rows, offsets, *_: _passes(x, window, times, offsets),
    frees_threads=True,
    out="ny",
    x="n",
    window="y",
)
@compiled
def convolve_into(
    kernel: tuple[Int, Int],
    x: Array,
    window: Window,
    slab_size: tuple[Int, Int, Int],
    times: Int,
    fill: Int,
    rows: Int,
    offsets: Array,
    weights: Array,
    constants: Array,
    zero_point: Int,
    low: Int,
    high: Int,
    out: Array,
) -> None:
    """Write codes of all images, by slabs of that size for `rows` output rows each; padding is `fill`.

    `kernel` is that of TapSums.line. `x` and `out` hold codes as unsigned ones.

    Prepare guarantees: `slab_size` is slab_shape's for `rows` rows; `window` lies over an image of x's height and
    width, `out` is (N, out_h, out_w, C * times), contiguous; `offsets`, `weights` and `constants` are those of the
    window's taps, packed for the kernel's lines.
    """
    channels = out.shape[3]
    slab_rows, phases, columns = slab_size
    slab = np.empty(slab_rows * phases * columns * channels + SLACK, x.dtype)
    image = slab[: slab_rows * phases * columns * channels].reshape((slab_rows, phases, columns, channels))
    step, length = phases * columns * channels * window.stride_h, window.out_w * channels
    flat = out.reshape(-1)
    for n in range(out.shape[0]):
        for start in range(0, window.out_h, rows):
            count = min(rows, window.out_h - start)
            slab_into(x[n], 0, fill, window, start * window.stride_h - window.pad_top, times, image)
            at = (n * window.out_h + start) * length
            lines_into(kernel, slab, step, offsets, weights, constants, zero_point, low, high, flat, at, count, length)


@in_pieces(
    lambda slab, row_step, w, offsets, row, column, sums: sums.size * offsets.size, sums="yx", row="y", column="x"
)
@compiled
def accumulate(slab: Array, row_step: Int, w: Array, offsets: Array, row: Int, column: Int, sums: Array) -> None:
    """Compute sums[oy, ox, c] = sum over taps of slab times w, from output pixel (row, column) on.

    `slab` is flat, `row_step` elements an output row.
    Weights are repeated over several pixels, and nine taps go in one pass, so that the innermost loop is long. Nine
    products fit int32; over passes, sums wrap in their own type.

    Prepare guarantees: every tap of every row of `sums` lies inside of `slab`, `w` has a row for every offset, and
    there are whole passes of them.
    """
    run = w.shape[1]
    for oy in range(sums.shape[0]):
        line = sums[oy].reshape(-1)
        for start in range(0, line.size, run):
            total = line[start : start + run]
            at = (row + oy) * row_step + column * sums.shape[2] + start
            for t in range(0, offsets.size, TAPS_AT_ONCE):
                x0, x1, x2 = slab[at + offsets[t] :], slab[at + offsets[t + 1] :], slab[at + offsets[t + 2] :]
                x3, x4, x5 = slab[at + offsets[t + 3] :], slab[at + offsets[t + 4] :], slab[at + offsets[t + 5] :]
                x6, x7, x8 = slab[at + offsets[t + 6] :], slab[at + offsets[t + 7] :], slab[at + offsets[t + 8] :]
                w0, w1, w2, w3, w4, w5, w6, w7, w8 = (
                    w[t],
                    w[t + 1],
                    w[t + 2],
                    w[t + 3],
                    w[t + 4],
                    w[t + 5],
                    w[t + 6],
                    w[t + 7],
                    w[t + 8],
                )
                for k in range(total.size):
                    nine = (
                        np.int32(x0[k]) * np.int32(w0[k])
                        + np.int32(x1[k]) * np.int32(w1[k])
                        + np.int32(x2[k]) * np.int32(w2[k])
                        + np.int32(x3[k]) * np.int32(w3[k])
                        + np.int32(x4[k]) * np.int32(w4[k])
                        + np.int32(x5[k]) * np.int32(w5[k])
                        + np.int32(x6[k]) * np.int32(w6[k])
                        + np.int32(x7[k]) * np.int32(w7[k])
                        + np.int32(x8[k]) * np.int32(w8[k])
                    )
                    total[k] = nine if t == 0 else total[k] + nine
