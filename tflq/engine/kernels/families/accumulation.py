"""Values that are folded into an array one after the other, each at a place of its own.

Places may repeat: what lies there is folded with the values in their order, which decides the bits of float sums.
Source: LiteRT 2.3 reference_ops::UnsortedSegmentRef, SegmentSum; stablehlo_scatter.cc ApplyComputation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces, ranges
from tflq.typing import Array

Places = NDArray[np.intp]
#: (out, places, values): all flat, `values` as long as `places`.
Fold = Callable[[Array, Places, Array], None]


def add(out: Array, places: Places, values: Array) -> None:
    """Add; integers wrap, bool is a logical or."""
    if _is_compiled(out):
        _add(out, places, values)
        return
    for start, stop in ranges(places.size, 8):
        np.add.at(out, places[start:stop], values[start:stop])


def multiply(out: Array, places: Places, values: Array) -> None:
    """Multiply; integers wrap, bool is a logical and."""
    if _is_compiled(out):
        _multiply(out, places, values)
        return
    for start, stop in ranges(places.size, 8):
        np.multiply.at(out, places[start:stop], values[start:stop])


def replace(out: Array, places: Places, values: Array) -> None:
    """Store values; the last one for a place wins."""
    _each(_replace, out, places, values)


def keep_larger(out: Array, places: Places, values: Array) -> None:
    """Compute std::max(out, value): `out` stays where they are equal or one is NaN."""
    _each(_keep_larger, out, places, values)


def keep_smaller(out: Array, places: Places, values: Array) -> None:
    """Compute std::min(out, value): `out` stays where they are equal or one is NaN."""
    _each(_keep_smaller, out, places, values)


def _each(loop: Callable[..., Any], out: Array, places: Places, values: Array) -> None:
    if out.dtype != np.float16:
        loop(out, places, values)
        return
    wide = out.astype(np.float32)  # compiled code has no float16; float32 holds all its values
    loop(wide, places, values.astype(np.float32))
    out[:] = wide.astype(np.float16)


def _is_compiled(out: Array) -> bool:
    return out.dtype != np.float16 and out.dtype.kind in "iuf"


@in_pieces(places="r", values="r")
@compiled
def _add(out: Array, places: Places, values: Array) -> None:
    """Eval guarantees: every place is in [0, out.size), and there is one value a place."""
    for i in range(places.size):
        out[places[i]] += values[i]


@in_pieces(places="r", values="r")
@compiled
def _multiply(out: Array, places: Places, values: Array) -> None:
    """Eval guarantees: every place is in [0, out.size), and there is one value a place."""
    for i in range(places.size):
        out[places[i]] *= values[i]


@in_pieces(places="r", values="r")
@compiled
def _replace(out: Array, places: Places, values: Array) -> None:
    """Eval guarantees: every place is in [0, out.size), and there is one value a place."""
    for i in range(places.size):
        out[places[i]] = values[i]


@in_pieces(places="r", values="r")
@compiled
def _keep_larger(out: Array, places: Places, values: Array) -> None:
    """Eval guarantees: every place is in [0, out.size), and there is one value a place."""
    for i in range(places.size):
        if out[places[i]] < values[i]:
            out[places[i]] = values[i]


@in_pieces(places="r", values="r")
@compiled
def _keep_smaller(out: Array, places: Places, values: Array) -> None:
    """Eval guarantees: every place is in [0, out.size), and there is one value a place."""
    for i in range(places.size):
        if values[i] < out[places[i]]:
            out[places[i]] = values[i]
