"""Reductions over axes: what MEAN, SUM and the REDUCE_ operators share.

The input is seen as (outer, reduced, inner) with the reduced axes in their own order, so that each output takes its
elements in the order in which they lie in memory: that decides the bits of float sums.
Source: LiteRT 2.3, reduce.cc PrepareSimple, GetOutputShape, EvalType; reference/reduce.h Reduce, ReduceGeneric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.filling import Call, filling, in_turn
from tflq.engine.kernels.geometry.axes import resolve_axis
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: The position of the axes operand, whose values decide the output's shape.
AXES = (1,)


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """Which elements make each output: `order` brings the axes together, `view` is (outer, reduced, inner)."""

    order: tuple[int, ...] | None  # None if they already lie so
    view: tuple[int, int, int]
    shape: Shape  # of the output
    over_all: bool  # every axis is reduced

    @property
    def count(self) -> int:
        """Elements that make one output."""
        return self.view[1]

    def rows(self, x: Array) -> Array:
        """Return `x` as (outer, reduced, inner), C-contiguous."""
        return np.ascontiguousarray(x if self.order is None else x.transpose(self.order)).reshape(self.view)

    def bound(self, x: Array) -> tuple[Array, list[Call]]:
        """Return the rows of a contiguous `x`, and the calls that fill them first."""
        if self.order is None:
            return np.asarray(x, order="C").reshape(self.view), []
        turned = x.transpose(self.order)
        copied = np.empty(turned.shape, x.dtype)
        return copied.reshape(self.view), [partial(np.copyto, copied, turned)]


def reduced_axes(node: Node) -> Reduced:
    """Resolve the axes operand: negative ones count from the end, repeated ones count once."""
    x = node.input(0)
    rank = len(x.shape)
    values = node.constant(1).reshape(-1).tolist()
    axes = sorted({resolve_axis(node, int(v), rank, node.input(1)) for v in values}) if rank else []
    keep = bool(node.options["keep_dims"])
    kept = [i for i in range(rank) if i not in axes]
    shape = tuple(1 if i in axes else x.shape[i] for i in range(rank)) if keep else tuple(x.shape[i] for i in kept)
    count = prod(x.shape[i] for i in axes)
    over_all = len(axes) == rank
    if not axes:
        return Reduced(None, (1, 1, prod(x.shape)), shape, over_all)
    if axes == list(range(axes[0], axes[-1] + 1)):
        return Reduced(None, (prod(x.shape[: axes[0]]), count, prod(x.shape[axes[-1] + 1 :])), shape, over_all)
    return Reduced((*kept, *axes), (prod(x.shape[i] for i in kept), count, 1), shape, over_all)


def check_same_quantization(node: Node) -> None:
    """Refuse quantized operands whose scales or zero points differ. Source: EvalType."""
    x, y = node.input(0), node.outputs[0]
    if x.type in (TensorType.UINT8, TensorType.INT8, TensorType.INT16):
        node.check(bool(x.scale == y.scale), "scale", y, expected=x.scale, got=y.scale)
        node.check(x.zero_point == y.zero_point, "zero point", y, expected=x.zero_point, got=y.zero_point)
    if x.type == TensorType.INT16:
        node.check(x.zero_point == 0, "zero point", x, expected=0, got=x.zero_point)


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A fold of one type over the axes."""

    reduced: Reduced
    fold: Compiled[[Array, Array, bool], None]  # (rows, out, whether to begin with the first element)
    start: Any  # what an output begins with
    dtype: np.dtype[Any]


def kernels(
    op: str,
    fold: Compiled[[Array, Array, bool], None],
    start: Callable[[np.dtype[Any]], Any],
    types: tuple[str, ...],
    versions: tuple[int, int],
) -> tuple[Kernel, ...]:
    """Return the kernels of a fold in the operand's own type; outputs begin with `start(dtype)`."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        check_same_quantization(node)
        reduced = reduced_axes(node)
        dtype = CARRIER[node.input(0).type]
        return Prepared((reduced.shape,), Folded(reduced, fold, start(dtype), dtype), eval_folded)

    return tuple(Kernel(op, f"{t} int32 -> {t}", prepare, versions, AXES) for t in types)


@filling(lambda data, x, _: (data.reduced.shape, data.dtype))
def eval_folded(data: Folded, out: Array, x: Array, axes: Array) -> Call:
    """Source: ReduceGeneric, ReduceAllDims: over all axes the first element begins, else the neutral one."""
    rows, calls = data.reduced.bound(x)
    sums = out.reshape(rows.shape[0], rows.shape[2])
    calls.append(partial(sums.fill, data.start))
    if rows.size:
        calls.append(data.fold.bound(rows, sums, data.reduced.over_all))
    return in_turn(calls)


@in_pieces(x="ok", out="o", begin="k")
@compiled
def fold_sum(x: Array, out: Array, begin: bool) -> None:
    """Compute out = out + x[0] + x[1] + ..., in that order; integers wrap.

    Prepare guarantees: `x` is (outer, reduced, inner) and `out` (outer, inner).
    """
    outer, count, inner = x.shape
    for o in range(outer):
        for k in range(count):
            for i in range(inner):
                if begin and k == 0:
                    out[o, i] = x[o, 0, i]
                else:
                    out[o, i] += x[o, k, i]


@in_pieces(x="ok", out="o", begin="k")
@compiled
def fold_product(x: Array, out: Array, begin: bool) -> None:
    """Compute out = out * x[0] * x[1] * ..., in that order; integers wrap.

    Prepare guarantees: `x` is (outer, reduced, inner) and `out` (outer, inner).
    """
    outer, count, inner = x.shape
    for o in range(outer):
        for k in range(count):
            for i in range(inner):
                if begin and k == 0:
                    out[o, i] = x[o, 0, i]
                else:
                    out[o, i] *= x[o, k, i]


@compiled
def larger(current: Real, x: Real) -> Real:
    """Return the larger; `current` where they are equal or one is NaN."""
    return x if x > current else current


@compiled
def smaller(current: Real, x: Real) -> Real:
    """Return the smaller; `current` where they are equal or one is NaN."""
    return x if x < current else current


@in_pieces(x="ok", out="o", begin="k")
@compiled
def fold_largest(x: Array, out: Array, begin: bool) -> None:
    """Keep the largest of out and all x.

    Prepare guarantees: `x` is (outer, reduced, inner) and `out` (outer, inner).
    """
    outer, count, inner = x.shape
    for o in range(outer):
        for k in range(count):
            for i in range(inner):
                if begin and k == 0:
                    out[o, i] = x[o, 0, i]
                else:
                    out[o, i] = larger(out[o, i], x[o, k, i])


@in_pieces(x="ok", out="o", begin="k")
@compiled
def fold_smallest(x: Array, out: Array, begin: bool) -> None:
    """Keep the smallest of out and all x.

    Prepare guarantees: `x` is (outer, reduced, inner) and `out` (outer, inner).
    """
    outer, count, inner = x.shape
    for o in range(outer):
        for k in range(count):
            for i in range(inner):
                if begin and k == 0:
                    out[o, i] = x[o, 0, i]
                else:
                    out[o, i] = smaller(out[o, i], x[o, k, i])


@in_pieces(x="ok", out="o", begin="k")
@compiled
def fold_last_largest(x: Array, out: Array, begin: bool) -> None:
    """Keep the largest of out and all x, the last of equal ones; NaN stays until the next element.

    Prepare guarantees: `x` is (outer, reduced, inner) and `out` (outer, inner).
    """
    outer, count, inner = x.shape
    for o in range(outer):
        for k in range(count):
            for i in range(inner):
                kept = not (begin and k == 0) and out[o, i] > x[o, k, i]
                if not kept:
                    out[o, i] = x[o, k, i]


@in_pieces(x="ok", out="o", begin="k")
@compiled
def fold_last_smallest(x: Array, out: Array, begin: bool) -> None:
    """Keep the smallest of out and all x, the last of equal ones; NaN stays until the next element.

    Prepare guarantees: `x` is (outer, reduced, inner) and `out` (outer, inner).
    """
    outer, count, inner = x.shape
    for o in range(outer):
        for k in range(count):
            for i in range(inner):
                kept = not (begin and k == 0) and out[o, i] < x[o, k, i]
                if not kept:
                    out[o, i] = x[o, k, i]


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return the lowest finite value of a type."""
    if dtype.kind == "b":
        return False
    return np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """Return the highest finite value of a type."""
    if dtype.kind == "b":
        return True
    return np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max


def sum_int32(rows: Array) -> Array:
    """Return sums over the middle axis as int32, wrapping: (outer, inner), of integers no wider than 16 bits."""
    sums = np.zeros((rows.shape[0], rows.shape[2]), np.int32)
    fold_sum(rows, sums, False)
    return sums
