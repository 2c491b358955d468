"""Windows of any number of dimensions, folded to one element each: what the two REDUCE_WINDOW operators share.

Source: LiteRT 2.3, stablehlo_reduce_window.cc ReduceWindowData, ReduceWindow, StridedReduce.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.kernels.kernel import Array, Node, Shape

TYPES = ("float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
_MAX_RANK = 6

#: The value so far and the next one.
Fold = Callable[[Array, Array], Array]


def _all(total: Array, x: Array) -> Array:
    return np.asarray((total != 0) & (x != 0), x.dtype)


def _any(total: Array, x: Array) -> Array:
    return np.asarray((total != 0) | (x != 0), x.dtype)


def _larger(total: Array, x: Array) -> Array:
    """Keep a NaN, once met, until a value follows it: every comparison with it chooses the new value."""
    return np.where(total >= x, total, x)


def _smaller(total: Array, x: Array) -> Array:
    return np.where(total <= x, total, x)


FOLDS: dict[str, Fold] = {
    "ADD": np.add,
    "MUL": np.multiply,
    "MAXIMUM": _larger,
    "MINIMUM": _smaller,
    "ALL": _all,
    "ANY": _any,
}


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Windows over an input, in elements."""

    fold: Fold
    size: Shape
    strides: Shape
    dilations: Shape
    shape: Shape  # of the output


def windows(node: Node, fold: Fold, shape: Shape, size: Shape, strides: Shape, dilations: Shape) -> Windows:
    """Return windows over an input of that shape; none where one does not fit."""
    node.check(1 <= len(shape) <= _MAX_RANK, "number of dimensions", expected=f"1 to {_MAX_RANK}", got=len(shape))
    for name, values in (("window", size), ("strides", strides), ("dilations", dilations)):
        node.check(len(values) == len(shape), f"number of {name}", expected=len(shape), got=len(values))
        node.check(all(v > 0 for v in values), name, expected="above 0", got=list(values))
    reaches = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    steps = zip(shape, reaches, strides, strict=True)
    out = tuple(0 if length < reach else (length - reach) // stride + 1 for length, reach, stride in steps)
    return Windows(fold, size, strides, dilations, out)


def fold_windows(data: Windows, x: Array, start: Array) -> Array:
    """Fold each window's elements in order, from `start` on. bool counts as int8, as in the source.

    Rounding: one per element, of the type. Overflow: integers wrap.
    """
    codes = x.view(np.int8) if x.dtype == np.bool_ else x
    total = np.full(data.shape, start.reshape(-1)[0].astype(codes.dtype), codes.dtype)
    if total.size:
        for place in np.ndindex(data.size):
            total = data.fold(total, codes[_seen(data, place)])
    return total.view(x.dtype)


def _seen(data: Windows, place: Shape) -> tuple[slice, ...]:
    """Return the slices that all windows see at one of their places."""
    parts = zip(place, data.dilations, data.strides, data.shape, strict=True)
    return tuple(slice(p * d, p * d + (count - 1) * s + 1, s) for p, d, s, count in parts)
