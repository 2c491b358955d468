"""Float contractions in the reference kernels' order: product and sum rounded apart, one float32 sum per output.

Outputs are independent of each other, so the loops run over output channels innermost: the order within each sum is the
source's, and the machine still works on many sums at a time.
Source: LiteRT 2.3 reference/conv.h, depthwiseconv_float.h, transpose_conv.h, fully_connected.h, batch_matmul.h.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.geometry.windows import Window
from tflq.typing import Array


@compiled
def clamp_std(x: Real, low: Real, high: Real) -> Real:
    """Return std::min(std::max(x, low), high): NaN passes, and so does the sign of a zero at a limit."""
    x = low if x < low else x
    return high if high < x else x


@compiled
def finish(sums: Array, bias: Array, low: Real, high: Real, out: Array) -> None:
    """Compute out[c] = clamp(sums[c] + bias[c]).

    The caller guarantees: `sums` and `bias` have the size of `out`.
    """
    for c in range(out.shape[0]):
        out[c] = clamp_std(sums[c] + bias[c], low, high)


@writes("sums")
@in_pieces(sums="r")
@compiled
def finish_pixels(sums: Array, bias: Array, low: Real, high: Real) -> None:
    """Compute sums[i] = clamp(sums[i] + bias), pixel by pixel.

    Prepare guarantees: `sums` is (pixels, channels) and `bias` (channels).
    """
    for i in range(sums.shape[0]):
        finish(sums[i], bias, low, high, sums[i])


@writes("out")
@in_pieces(
    lambda x, w, bias, window, *_: len(x) * window.out_h * window.out_w * w.size,
    frees_threads=True,
    out="nyx",
    x="n",
    window="yx",
)
@compiled
def convolve(x: Array, w: Array, bias: Array, window: Window, filters: int, low: Real, high: Real, out: Array) -> None:
    """Compute CONV_2D. `x` N, H, W, C; `w` KH, KW, C/G, O; `filters` output channels a group.

    Prepare guarantees: `window` lies over an image of x's height and width, `bias` is (O), `out` (N, out_h, out_w, O);
    C is a multiple of w's third dimension, O = groups * `filters`.
    """
    depth, channels = w.shape[2], w.shape[3]
    sums = np.empty(channels, np.float32)
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            for ox in range(window.out_w):
                sums[:] = 0
                for ky in range(window.kernel_h):
                    y = oy * window.stride_h - window.pad_top + ky * window.dilation_h
                    if y < 0 or y >= window.height:
                        continue
                    for kx in range(window.kernel_w):
                        column = ox * window.stride_w - window.pad_left + kx * window.dilation_w
                        if column < 0 or column >= window.width:
                            continue
                        for first in range(0, channels, filters):
                            base = first // filters * depth
                            for c in range(depth):
                                value = x[n, y, column, base + c]
                                weights = w[ky, kx, c, first : first + filters]
                                part = sums[first : first + filters]
                                for o in range(filters):
                                    part[o] += value * weights[o]
                finish(sums, bias, low, high, out[n, oy, ox])


@writes("out")
@in_pieces(
    lambda x, w, start, bias, window, *_: len(x) * window.out_h * window.out_w * w.size,
    frees_threads=True,
    out="nyx",
    x="n",
    window="yx",
)
@compiled
def convolve_depthwise(
    x: Array, w: Array, start: Array, bias: Array, window: Window, low: Real, high: Real, out: Array
) -> None:
    """Compute DEPTHWISE_CONV_2D. `x` N, H, W, C; `w` KH, KW, C * M. Sums begin with `start` and end with `bias`.

    Prepare guarantees: `window` lies over an image of x's height and width, `start` and `bias` are (C * M), `out` is
    (N, out_h, out_w, C * M), and C > 0.
    """
    depth, channels = x.shape[3], w.shape[2]
    times = channels // depth
    sums = np.empty(channels, np.float32)
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            for ox in range(window.out_w):
                for o in range(channels):  # quicker to compile than an assignment of arrays
                    sums[o] = start[o]
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
                                sums[o] += values[o] * weights[o]
                        else:
                            for o in range(channels):
                                sums[o] += values[o // times] * weights[o]
                finish(sums, bias, low, high, out[n, oy, ox])


def convolve_transposed(x: Array, w: Array, bias: Array, window: Window, low: Real, high: Real, out: Array) -> None:
    """Compute TRANSPOSE_CONV. `x` N, H, W, C; `w` KH, KW, C, O; `window` is that of the transposed convolution."""
    out.fill(0)
    _spread(x, w, window, out)
    finish_pixels(out.reshape(-1, w.shape[3]), bias, low, high)


@in_pieces(lambda x, w, window, out: x[..., :1].size * w.size, x="nyx", out="n", window="yx")
@compiled
def _spread(x: Array, w: Array, window: Window, out: Array) -> None:
    """Add every pixel of `x` through the filter onto `out`, over y, x, ky, kx, c in order.

    Prepare guarantees: `x` is (N, out_h, out_w, C) of `window`, whose image is that of `out` (N, height, width, O).
    """
    depth, channels = w.shape[2], w.shape[3]
    for n in range(x.shape[0]):
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
                            value = x[n, y, column, c]
                            weights = w[ky, kx, c]
                            for o in range(channels):
                                sums[o] += value * weights[o]


@writes("out")
@in_pieces(lambda x, w, *_: len(x) * w.size, frees_threads=True, x="r", out="r")
@compiled
def multiply(x: Array, w: Array, bias: Array, low: Real, high: Real, out: Array) -> None:
    """Compute FULLY_CONNECTED and one matrix of BATCH_MATMUL. `x` (R, K), `w` (K, N), `out` (R, N).

    Prepare guarantees: these shapes, and that `bias` is (N).
    """
    rows, length = x.shape
    channels = w.shape[1]
    sums = np.empty(channels, np.float32)
    for r in range(rows):
        sums[:] = 0
        for k in range(length):
            value, weights = x[r, k], w[k]
            for o in range(channels):
                sums[o] += value * weights[o]
        finish(sums, bias, low, high, out[r])
