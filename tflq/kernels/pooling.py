"""Pooling: what its two operators share. Windows are cut at the border; taps outside do not count.

Source: LiteRT 2.3 pooling.cc GenericPrepare; reference/pooling.h, reference/integer_ops/pooling.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.kernels.activation import code_range, float_range
from tflq.kernels.geometry import Axis, Window, axis
from tflq.kernels.kernel import Array, Node, Prepared, Shape
from tflq.kernels.ordered import clamp_std
from tflq.numerics.compiled import Int, Real, compiled
from tflq.numerics.rounding import clamp

_EMPTY = Axis(0, 1, 1, 1, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of both operators."""

    window: Window  # pixels
    shape: Shape  # of the output
    low: Any  # LSB of output, or float32
    high: Any  # the same


def prepare_pool(node: Node, dtype: np.dtype[Any], evaluate: Callable[[OpData, Array], Array]) -> Prepared:
    """Bind `evaluate`. A window that does not fit gives an empty output, as in the source."""
    x, y = node.input(0), node.outputs[0]
    node.check(len(x.shape) == 4, "rank", x, expected=4, got=len(x.shape))
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
    low, high = float_range(node) if dtype == np.float32 else code_range(node, y, dtype)
    return Prepared((shape,), OpData(at, shape, low, high), evaluate)


@compiled
def average_half_away(total: Int, count: Int) -> Int:
    """total / count, ties away from zero. `count` > 0."""
    half = count // 2
    return (total + half) // count if total > 0 else -((half - total) // count)


@compiled
def average_codes(x: Array, window: Window, low: Int, high: Int, out: Array) -> None:
    """Integer averages. For uint8 the source adds half and truncates: the same, as no sum is negative."""
    channels = out.shape[3]
    totals = np.empty(channels, np.int64)
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            top, left = oy * window.stride_h - window.pad_top, -window.pad_left
            for ox in range(window.out_w):
                totals[:] = 0
                count = 0
                for y in range(max(top, 0), min(top + window.kernel_h, window.height)):
                    for column in range(max(left, 0), min(left + window.kernel_w, window.width)):
                        values = x[n, y, column]
                        for c in range(channels):
                            totals[c] += values[c]
                        count += 1
                for c in range(channels):
                    out[n, oy, ox, c] = clamp(average_half_away(totals[c], count), low, high)
                left += window.stride_w


@compiled
def average_floats(x: Array, window: Window, low: Real, high: Real, out: Array) -> None:
    """Sums over ky, kx in order, one division."""
    channels = out.shape[3]
    totals = np.empty(channels, np.float32)
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            top, left = oy * window.stride_h - window.pad_top, -window.pad_left
            for ox in range(window.out_w):
                totals[:] = 0
                count = 0
                for y in range(max(top, 0), min(top + window.kernel_h, window.height)):
                    for column in range(max(left, 0), min(left + window.kernel_w, window.width)):
                        values = x[n, y, column]
                        for c in range(channels):
                            totals[c] += values[c]
                        count += 1
                for c in range(channels):
                    out[n, oy, ox, c] = clamp_std(totals[c] / np.float32(count), low, high)
                left += window.stride_w


@compiled
def root_mean_squares(x: Array, window: Window, low: Real, high: Real, out: Array) -> None:
    """Sums of squares over ky, kx in order, one division, one root."""
    channels = out.shape[3]
    totals = np.empty(channels, np.float32)
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            top, left = oy * window.stride_h - window.pad_top, -window.pad_left
            for ox in range(window.out_w):
                totals[:] = 0
                count = 0
                for y in range(max(top, 0), min(top + window.kernel_h, window.height)):
                    for column in range(max(left, 0), min(left + window.kernel_w, window.width)):
                        values = x[n, y, column]
                        for c in range(channels):
                            totals[c] += values[c] * values[c]
                        count += 1
                for c in range(channels):
                    out[n, oy, ox, c] = clamp_std(np.sqrt(totals[c] / np.float32(count)), low, high)
                left += window.stride_w


@compiled
def largest(x: Array, window: Window, lowest: Any, low: Any, high: Any, out: Array) -> None:
    """Maxima over ky, kx, then the clamp; a NaN loses every comparison, as in std::max. Limits are of x's type."""
    channels = out.shape[3]
    for n in range(out.shape[0]):
        for oy in range(window.out_h):
            top, left = oy * window.stride_h - window.pad_top, -window.pad_left
            for ox in range(window.out_w):
                best = out[n, oy, ox]
                best[:] = lowest
                for y in range(max(top, 0), min(top + window.kernel_h, window.height)):
                    for column in range(max(left, 0), min(left + window.kernel_w, window.width)):
                        values = x[n, y, column]
                        for c in range(channels):
                            best[c] = values[c] if best[c] < values[c] else best[c]
                for c in range(channels):
                    best[c] = clamp_std(best[c], low, high)
                left += window.stride_w
