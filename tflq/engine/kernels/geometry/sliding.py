"""Windows of any number of dimensions, folded to one element each: what the two REDUCE_WINDOW operators share.

Source: LiteRT 2.3, stablehlo_reduce_window.cc ReduceWindowData, ReduceWindow, StridedReduce.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, compiled
from tflq.engine.jit.pieces import InPieces, in_pieces
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.geometry.flat import flat_places
from tflq.engine.kernels.kernel import Node, Shape
from tflq.typing import Array

TYPES = ("float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
_MAX_RANK = 6

#: The value so far and the next one, compiled; its result is stored in the type of the elements.
Fold = Compiled[..., Any]


@compiled
def _sum(total: Any, x: Any) -> Any:
    return total + x


@compiled
def _product(total: Any, x: Any) -> Any:
    return total * x


@compiled
def _all(total: Any, x: Any) -> Any:
    return total != 0 and x != 0


@compiled
def _any(total: Any, x: Any) -> Any:
    return total != 0 or x != 0


@compiled
def _larger(total: Any, x: Any) -> Any:
    """Keep a NaN, once met, until a value follows it: every comparison with it chooses the new value."""
    return total if total >= x else x


@compiled
def _smaller(total: Any, x: Any) -> Any:
    return total if total <= x else x


FOLDS: dict[str, Fold] = {
    "ADD": _sum,
    "MUL": _product,
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
    shape: Shape  # of the output
    strides: Shape  # in elements of the flat input
    dilations: Shape  # likewise


def windows(node: Node, fold: Fold, shape: Shape, size: Shape, strides: Shape, dilations: Shape) -> Windows:
    """Return windows over an input of that shape; none where one does not fit."""
    node.check(1 <= len(shape) <= _MAX_RANK, "number of dimensions", expected=f"1 to {_MAX_RANK}", got=len(shape))
    for name, values in (("window", size), ("strides", strides), ("dilations", dilations)):
        node.check(len(values) == len(shape), f"number of {name}", expected=len(shape), got=len(values))
        node.check(all(v > 0 for v in values), name, expected="above 0", got=list(values))
    reaches = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    steps = zip(shape, reaches, strides, strict=True)
    out = tuple(0 if length < reach else (length - reach) // stride + 1 for length, reach, stride in steps)
    flat = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    apart = tuple(step * stride for step, stride in zip(flat, strides, strict=True))
    return Windows(fold, size, out, apart, tuple(step * d for step, d in zip(flat, dilations, strict=True)))


@filling(lambda data, x, *_: (data.shape, x.dtype))
def fold_windows(data: Windows, out: Array, x: Array, start: Array, *_: Array) -> Call:
    """Fold each window's elements in order, from `start` on. bool counts as int8, as in the source.

    Rounding: one per element, of the type. Overflow: integers wrap.
    """
    arrays = (np.asarray(a, order="C").reshape(-1) for a in (x, start, out))
    codes, first, total = (a.view(np.int8) if a.dtype == np.bool_ else a for a in arrays)
    if not out.size:
        return lambda: None
    begin, places = flat_places(data.shape, data.strides), flat_places(data.size, data.dilations)
    return _folding(data.fold).bound(begin, total, codes, first[:1], places)


#: The name that `_folding` replaces.
fold: Any = None


@cache
def _folding(function: Fold) -> InPieces:
    return _fold_into.bind(fold=function)  # type: ignore[return-value]


@in_pieces(lambda first, out, x, start, places: out.size * places.size, first="r", out="r", frees_threads=True)
@compiled
def _fold_into(first: Array, out: Array, x: Array, start: Array, places: Array) -> None:
    """Eval guarantees: `out` is as long as `first`, `start` has one element, first[i] + places[k] is in `x`."""
    for i in range(out.size):
        out[i] = start[0]
    for k in range(places.size):
        for i in range(out.size):
            out[i] = fold(out[i], x[first[i] + places[k]])
