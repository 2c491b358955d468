"""Pooling: what its two operators share. Windows are cut at the border; taps outside do not count.

Source: LiteRT 2.3 pooling.cc GenericPrepare; reference/pooling.h, reference/integer_ops/pooling.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, writes
from tflq.engine.jit.pieces import InPieces, in_pieces
from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.families.activation import code_range, float_range
from tflq.engine.kernels.families.ordered import clamp_std
from tflq.engine.kernels.geometry.windows import Axis, Window, axis
from tflq.engine.kernels.kernel import Call, Node, Prepared, Shape, in_turn
from tflq.engine.numerics.codes import Clamp, NumberClamp
from tflq.engine.numerics.rounding import clamp
from tflq.errors import UndefinedResultError
from tflq.typing import Array

_EMPTY = Axis(0, 1, 1, 1, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of both operators."""

    window: Window  # pixels
    shape: Shape  # of the output
    clamp: Clamp | NumberClamp  # LSB of output, or float32


def prepare_pool(node: Node, dtype: np.dtype[Any], evaluate: Callable[[OpData, Array], Array]) -> Prepared:
    """Bind `evaluate`. A window that does not fit gives an empty output, as in the source."""
    x, y = node.input(0), node.outputs[0]
    require_rank(node, x, 4)
    for name in ("stride_h", "stride_w"):
        node.check(int(node.options[name]) > 0, name, expected="above 0", got=node.options[name])
    padding = int(node.options["padding"])
    sizes = {"h": (x.shape[1], "filter_height"), "w": (x.shape[2], "filter_width")}
    v, h = (
        axis(padding, size, int(node.options[kernel]), int(node.options[f"stride_{letter}"]), 1)
        for letter, (size, kernel) in sizes.items()
    )
    at = Window.over(v if v is not None and h is not None else _EMPTY, h or _EMPTY)
    shape = (x.shape[0], at.out_h, at.out_w, x.shape[3])
    if dtype != np.float32 and not y.scale > 0 and int(node.options.get("fused_activation_function", 0)) in (1, 2, 3):
        raise UndefinedResultError(node.op, "limits over an output without a scale of its own are not set")
    limits = float_range(node) if dtype == np.float32 else code_range(node, y, dtype)
    return Prepared((shape,), OpData(at, shape, limits), evaluate)


@compiled
def average_half_away(total: Int, count: Int) -> Int:
    """Return total / count, ties away from zero. `count` > 0."""
    half = count // 2
    return (total + half) // count if total > 0 else -((half - total) // count)


@compiled
def inside(window: Window, oy: Int) -> tuple[Int, Int]:
    """Return the first and last image row, without the last, that output row `oy` sees."""
    top = oy * window.stride_h - window.pad_top
    return max(top, 0), min(top + window.kernel_h, window.height)


@compiled
def columns_inside(window: Window, ox: Int) -> tuple[Int, Int]:
    """Return the first and last image column, without the last, that output column `ox` sees."""
    left = ox * window.stride_w - window.pad_left
    return max(left, 0), min(left + window.kernel_w, window.width)


@compiled
def taps_inside(window: Window) -> tuple[Int, Int]:
    """Return the first and last tap of a row, without the last, that any output column finds inside the image."""
    return max(0, window.pad_left - (window.out_w - 1) * window.stride_w), min(
        window.kernel_w, window.width + window.pad_left
    )


@compiled
def seeing(window: Window, kx: Int) -> tuple[Int, Int]:
    """Return the first and last output column, without the last, whose tap `kx` lies inside the image."""
    step = window.stride_w
    offset = window.pad_left - kx
    return max(0, -(-offset // step)), min(window.out_w, (window.width - 1 + offset) // step + 1)


@writes("out")
@in_pieces(lambda x, window, low, high, out: x.size + out.size * 4, out="ny", x="n", window="y")
@compiled
def average_codes(x: Array, window: Window, low: Int, high: Int, out: Array) -> None:
    """Average integers. For uint8 the source adds half and truncates: the same, as no sum is negative.

    Sums of windows are differences of running sums: exact, and as fast for large windows as for small ones.

    Prepare guarantees: `window` lies over an image of x's height and width, `out` is (N, out_h, out_w, C).
    """
    channels = out.shape[3]
    sums = np.empty((window.width, channels), np.int64)  # of the rows that the window sees now
    running = np.zeros((window.width + 1, channels), np.int64)  # of all columns to the left
    for n in range(out.shape[0]):
        sums[:] = 0
        first, last = inside(window, 0)
        last = first
        for oy in range(window.out_h):
            top, bottom = inside(window, oy)
            for y in range(first, min(top, last)):
                for column in range(window.width):
                    for c in range(channels):
                        sums[column, c] -= x[n, y, column, c]
            for y in range(max(last, top), bottom):
                for column in range(window.width):
                    for c in range(channels):
                        sums[column, c] += x[n, y, column, c]
            first, last = top, bottom
            for column in range(window.width):
                for c in range(channels):
                    running[column + 1, c] = running[column, c] + sums[column, c]
            for ox in range(window.out_w):
                left, right = columns_inside(window, ox)
                count = (bottom - top) * (right - left)
                for c in range(channels):
                    total = running[right, c] - running[left, c]
                    out[n, oy, ox, c] = clamp(average_half_away(total, count), low, high)


@compiled
def itself(x: Real) -> Real:
    """Return `x`."""
    return x


@compiled
def square(x: Real) -> Real:
    """Return x * x."""
    return x * x


@compiled
def root(x: Real) -> Real:
    """Return the square root."""
    return np.sqrt(x)


#: The names that `averaging` replaces.
term: Any = None
end: Any = None


@cache
def averaging(of: Compiled[..., Any], to: Compiled[..., Any]) -> InPieces:
    """Return the loop (x, window, low, high, out) of sums of `of` over ky, kx in order, one division, then `to`."""
    return _averages.bind(term=of, end=to)  # type: ignore[return-value]


@in_pieces(lambda x, window, *_: _taps(x, window), out="nyx", x="n", window="yx")
@compiled
def _averages(x: Array, window: Window, low: Real, high: Real, out: Array) -> None:
    """Prepare guarantees: `window` lies over an image of x's height and width, `out` is (N, out_h, out_w, C)."""
    leftmost, rightmost = taps_inside(window)
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            top, bottom = inside(window, oy)
            totals = out[n, oy]
            totals[:] = 0
            for y in range(top, bottom):
                for kx in range(leftmost, rightmost):
                    first, last = seeing(window, kx)
                    for ox in range(first, last):
                        total, values = totals[ox], x[n, y, ox * window.stride_w - window.pad_left + kx]
                        for c in range(values.size):
                            total[c] += term(values[c])
            for ox in range(window.out_w):
                left, right = columns_inside(window, ox)
                count = np.float32((bottom - top) * (right - left))
                for c in range(totals.shape[1]):
                    totals[ox, c] = clamp_std(end(totals[ox, c] / count), low, high)


def largest(x: Array, window: Window, lowest: Any, low: Any, high: Any, out: Array) -> Call:
    """Return the call that finds maxima over ky, kx, then clamps; a NaN loses comparisons, as in std::max.

    Limits are of x's type. Of equal values the first stays, so that the maxima of the rows' maxima are those of the
    window, zeros' signs included.
    """
    rows = np.empty((*x.shape[:2], *out.shape[2:]), x.dtype)
    across = _largest_across.bound(x, window, lowest, rows)
    return in_turn([across, _largest_down.bound(rows, window, lowest, low, high, out)])


@writes("out")
@in_pieces(lambda x, window, lowest, out: out.size * window.kernel_w, out="nyx", x="ny", window="yx")
@compiled
def _largest_across(x: Array, window: Window, lowest: Any, out: Array) -> None:
    """Write the maxima of each image row over the columns of its windows.

    Prepare guarantees: `window` lies over an image of x's width, `out` is (N, height, out_w, C).
    """
    leftmost, rightmost = taps_inside(window)
    for n in range(out.shape[0]):
        for y in range(out.shape[1]):
            best = out[n, y]
            best[:] = lowest
            for kx in range(leftmost, rightmost):
                first, last = seeing(window, kx)
                for ox in range(first, last):
                    largest, values = best[ox], x[n, y, ox * window.stride_w - window.pad_left + kx]
                    for c in range(values.size):
                        largest[c] = values[c] if largest[c] < values[c] else largest[c]


@writes("out")
@in_pieces(lambda rows, window, lowest, low, high, out: out.size * window.kernel_h, out="ny", rows="n", window="y")
@compiled
def _largest_down(rows: Array, window: Window, lowest: Any, low: Any, high: Any, out: Array) -> None:
    """Reduce the maxima of image rows to the maxima of windows.

    Prepare guarantees: `window` lies over an image of the height of `rows`, `out` is (N, out_h, out_w, C).
    """
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            top, bottom = inside(window, oy)
            best = out[n, oy].reshape(-1)
            best[:] = lowest
            for y in range(top, bottom):
                values = rows[n, y].reshape(-1)
                for i in range(best.size):
                    best[i] = values[i] if best[i] < values[i] else best[i]
            for i in range(best.size):
                best[i] = clamp_std(best[i], low, high)


def _taps(x: Array, window: Window) -> int:
    return int(x.shape[0] * window.out_h * window.out_w * window.taps * x.shape[3])
