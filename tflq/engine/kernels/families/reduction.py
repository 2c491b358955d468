"""Folds and reductions over axes.

Folds: one value so far and the next one make one value. The scalars, and the loops that bring elements to them.

Elements are folded in the order in which they lie in memory, or in which their places are listed: that decides the bits
of float sums. Results are stored in the type of the elements, so that integers wrap, sums of bool are true if one is,
and products if both are. There are three kinds of extremes, which differ in what equal values and NaN do.
Source: LiteRT 2.3, reference/reduce.h Reduce, ReduceGeneric; stablehlo_reduce_window.cc ReduceWindowData,
StridedReduce; reference_ops::UnsortedSegmentRef, SegmentSum, ScatterNd; stablehlo_scatter.cc ApplyComputation.

Reductions over axes: what MEAN, SUM and the REDUCE_ operators share.

The input is seen as (outer, reduced, inner) with the reduced axes in their own order, so that each output takes its
elements in the order in which they lie in memory: that decides the bits of float sums.
Source: LiteRT 2.3, reduce.cc PrepareSimple, GetOutputShape, EvalType; reference/reduce.h ReduceGeneric.

MEAN and SUM of codes that are rescaled in float32: the rule of each release and library as data.

Every rule rescales a sum, or its quotient by the number of summands: code = narrow(round(r * scale + bias) + zero
point). Each step is rounded to float32, and `round` is half away from zero.
Source: TensorFlow r1.15 to 2.14 reference_ops.h, reference/reduce.h QuantizedMeanOrSum; LiteRT 2.3 optimized/reduce.h
QuantizedMeanOrSum; XNNPACK's reduce, qs8 and qu8.

Reductions that XNNPACK takes.

Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode.

Operators along the last axis: what SOFTMAX and LOG_SOFTMAX share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import Compiled, Int, compiled, writes
from tflq.engine.jit.pieces import InPieces, in_pieces, ranges
from tflq.engine.kernels.checks import axis_within, require_zero_point_zero
from tflq.engine.kernels.delegation import has_shape, is_quantized
from tflq.engine.kernels.families.movement import Copying
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepare, Prepared, Shape, by_form, filling, in_turn
from tflq.engine.kernels.validity import When
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.elementary import exp_on_negative_values
from tflq.engine.numerics.multiplier import Multiplier, multiply_greater_than_one
from tflq.engine.numerics.rounding import floats_to_int32, nearest_half_away, rescale
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: The value so far and the next one, compiled.
Fold = Compiled[..., Any]


@compiled
def add(total: Any, x: Any) -> Any:
    """Return the sum."""
    return total + x


@compiled
def multiply(total: Any, x: Any) -> Any:
    """Return the product."""
    return total * x


@compiled
def both(total: Any, x: Any) -> Any:
    """Return whether neither is 0."""
    return total != 0 and x != 0


@compiled
def either(total: Any, x: Any) -> Any:
    """Return whether one is not 0."""
    return total != 0 or x != 0


@compiled
def newest(total: Any, x: Any) -> Any:
    """Return the next value."""
    return x


@compiled
def larger(total: Any, x: Any) -> Any:
    """Return the larger as std::max(total, x): `total` where they are equal or one is NaN."""
    return x if x > total else total


@compiled
def smaller(total: Any, x: Any) -> Any:
    """Return the smaller as std::min(total, x): `total` where they are equal or one is NaN."""
    return x if x < total else total


@compiled
def larger_number(total: Any, x: Any) -> Any:
    """Return the larger; `total` where they are equal, `x` where one is NaN, which stays until the next element."""
    return total if total >= x else x


@compiled
def smaller_number(total: Any, x: Any) -> Any:
    """Return the smaller; `total` where they are equal, `x` where one is NaN, which stays until the next element."""
    return total if total <= x else x


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


#: The name that the loops below call, and that binding replaces.
fold: Any = None


@cache
def over_axes(function: Fold) -> InPieces:
    """Return the loop (x, out, begin) that folds x (outer, reduced, inner) into out (outer, inner).

    `begin`: an output begins with its first element, not with what lies in `out`.
    """
    return _over_axes.bind(fold=function)  # type: ignore[return-value]


@in_pieces(x="ok", out="o", begin="k")
@compiled
def _over_axes(x: Array, out: Array, begin: bool) -> None:
    """Prepare guarantees: `x` is (outer, reduced, inner) and `out` (outer, inner)."""
    outer, count, inner = x.shape
    for o in range(outer):
        for k in range(count):
            if begin and k == 0:
                for i in range(inner):
                    out[o, i] = x[o, 0, i]
            else:
                for i in range(inner):
                    out[o, i] = fold(out[o, i], x[o, k, i])


def sum_int32(rows: Array) -> Array:
    """Return sums over the middle axis as int32, wrapping: (outer, inner), of integers no wider than 16 bits."""
    sums = np.zeros((rows.shape[0], rows.shape[2]), np.int32)
    over_axes(add)(rows, sums, False)
    return sums


@cache
def in_windows(function: Fold) -> InPieces:
    """Return the loop (first, out, x, start, places) that folds windows: out[i] from start, over x[first[i] + places].

    All are flat.
    """
    return _in_windows.bind(fold=function)  # type: ignore[return-value]


@in_pieces(lambda first, out, x, start, places: out.size * places.size, first="r", out="r", frees_threads=True)
@compiled
def _in_windows(first: Array, out: Array, x: Array, start: Array, places: Array) -> None:
    """Eval guarantees: `out` is as long as `first`, `start` has one element, first[i] + places[k] is in `x`."""
    for i in range(out.size):
        out[i] = start[0]
    for k in range(places.size):
        for i in range(out.size):
            out[i] = fold(out[i], x[first[i] + places[k]])


@cache
def by_rows(function: Fold) -> InPieces:
    """Return the loop (rows, places, out) that folds each row into the row of `out` at its place, in order."""
    return _by_rows.bind(fold=function)  # type: ignore[return-value]


@writes("out")
@in_pieces(rows="r", places="r")
@compiled
def _by_rows(rows: Array, places: Array, out: Array) -> None:
    """Eval guarantees: there is one place for each row, in [0, len(out)), and rows are as long as those of `out`."""
    for r in range(rows.shape[0]):
        row, there = rows[r], out[places[r]]
        for i in range(row.size):
            there[i] = fold(there[i], row[i])


#: Folds of float16, which compiled code does not have: one rounding to float16 each.
_OF_HALVES = {add: np.add, multiply: np.multiply}


def at_places(function: Fold, out: Array, places: NDArray[np.intp], values: Array) -> None:
    """Fold values into `out` at their places, which may repeat; all are flat, `values` as long as `places`.

    Eval guarantees that places lie in `out`.
    """
    if out.dtype != np.float16:
        by_rows(function)(values.reshape(-1, 1), places, out.reshape(-1, 1))
    elif function in _OF_HALVES:
        for start, stop in ranges(places.size, 8):
            _OF_HALVES[function].at(out, places[start:stop], values[start:stop])
    else:
        wide = out.astype(np.float32)  # which holds all values of float16
        at_places(function, wide, places, values.astype(np.float32))
        out[:] = wide.astype(np.float16)


#: The position of the axes operand, whose values decide the output's shape.
AXES = (1,)


@dataclass(frozen=True, slots=True, eq=False)
class ReducedAxes:
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
        return copied.reshape(self.view), [Copying(turned, copied)]


def reduced_axes(node: Node) -> ReducedAxes:
    """Resolve the axes operand: negative ones count from the end, repeated ones count once."""
    x = node.input(0)
    rank = len(x.shape)
    values = node.constant(1).reshape(-1).tolist()
    axes = sorted({axis_within(node, int(v), rank, node.input(1)) for v in values}) if rank else []
    keep = bool(node.options["keep_dims"])
    kept = [i for i in range(rank) if i not in axes]
    shape = tuple(1 if i in axes else x.shape[i] for i in range(rank)) if keep else tuple(x.shape[i] for i in kept)
    count = prod(x.shape[i] for i in axes)
    over_all = len(axes) == rank
    if not axes:
        return ReducedAxes(None, (1, 1, prod(x.shape)), shape, over_all)
    if axes == list(range(axes[0], axes[-1] + 1)):
        return ReducedAxes(None, (prod(x.shape[: axes[0]]), count, prod(x.shape[axes[-1] + 1 :])), shape, over_all)
    return ReducedAxes((*kept, *axes), (prod(x.shape[i] for i in kept), count, 1), shape, over_all)


def check_same_quantization(node: Node) -> None:
    """Refuse quantized operands whose scales or zero points differ. Source: EvalType."""
    x, y = node.input(0), node.outputs[0]
    if x.type in (TensorType.UINT8, TensorType.INT8, TensorType.INT16):
        node.check(bool(x.scale == y.scale), "scale", y, expected=x.scale, got=y.scale)
        node.check(x.zero_point == y.zero_point, "zero point", y, expected=x.zero_point, got=y.zero_point)
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x)


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A fold of one type over the axes."""

    reduced: ReducedAxes
    fold: Fold
    start: Any  # what an output begins with
    dtype: np.dtype[Any]


def folding(fold: Fold, start: Callable[[np.dtype[Any]], Any]) -> Prepare:
    """Return the prepare of a fold in the operand's own type; outputs begin with `start(dtype)`."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        check_same_quantization(node)
        reduced = reduced_axes(node)
        dtype = CARRIER[node.input(0).type]
        return Prepared((reduced.shape,), Folded(reduced, fold, start(dtype), dtype), eval_folded)

    return prepare


def rows_by_type(op: str, last_version: int, places: Mapping[str, Mapping[When, Prepare]]) -> tuple[Kernel, ...]:
    """Return the rows of a reduction: for types ("uint8 int8"), where which prepare is valid."""
    forms = {f"{t} int32 -> {t}": where for types, where in places.items() for t in types.split()}
    return by_form(op, last_version, forms, AXES)


def rows_of(op: str, types: str, prepare: Prepare, last_version: int) -> tuple[Kernel, ...]:
    """Return the rows of a reduction, one a type."""
    return tuple(Kernel(op, f"{t} int32 -> {t}", prepare, (1, last_version), AXES) for t in types.split())


@filling(lambda data, x, _: (data.reduced.shape, data.dtype))
def eval_folded(data: Folded, out: Array, x: Array, axes: Array) -> Call:
    """Source: ReduceGeneric, ReduceAllDims: over all axes the first element begins, else the neutral one."""
    rows, calls = data.reduced.bound(x)
    sums = out.reshape(rows.shape[0], rows.shape[2])
    calls.append(partial(sums.fill, data.start))
    if rows.size:
        calls.append(over_axes(data.fold).bound(rows, sums, data.reduced.over_all))
    return in_turn(calls)


class NarrowSum(Enum):
    """How a number becomes a code."""

    CLIP_FLOAT = "add the zero point in float32, then clip"
    CLIP = "convert to int32, add the zero point, then clip"
    WRAP = "convert to int32, add the zero point, then drop the upper bits"

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class RescalingRule:
    """How one release rescales its sums."""

    divide: bool  # the mean is rescaled, not the sum
    narrow: NarrowSum
    half_step: bool = False  # the bias contains half a step, although rounding is to the nearest

    def prepare(self, node: Node, arithmetic: Arithmetic) -> Prepared:
        """Prepare a reduction over the axes operand."""
        data = self.of(node, reduced_axes(node))
        return Prepared((data.reduced.shape,), data, eval_rescaled)

    def of(self, node: Node, reduced: ReducedAxes) -> Rescaled:
        """Compute the constants in float32, left to right."""
        x, y = node.input(0), node.outputs[0]
        scale = x.scale / y.scale
        bias = np.float32(-x.zero_point) * scale
        if not self.divide:
            bias = bias * np.float32(reduced.count)
        if self.half_step:
            bias = bias + np.float32(0.5)
        return Rescaled(self, reduced, scale, bias, y.zero_point, CARRIER[x.type])


@dataclass(frozen=True, slots=True, eq=False)
class Rescaled:
    """Constants of a reduction that follows a rule."""

    rule: RescalingRule
    reduced: ReducedAxes
    scale: np.float32  # LSB of input -> LSB of output
    bias: np.float32  # contribution of the input's zero point, LSB of output
    zero_point: ZeroPoint  # LSB of output
    dtype: np.dtype[Any]

    def codes(self, real: Array) -> Array:
        """Return the codes of float32 sums or means."""
        scaled = real * self.scale + self.bias
        if self.rule.narrow is NarrowSum.CLIP_FLOAT:
            whole = nearest_half_away(scaled) + np.float32(self.zero_point)
        else:
            whole = self.integers(scaled)
        if self.rule.narrow is not NarrowSum.WRAP:
            whole = np.clip(whole, *type_range(self.dtype))
        return np.asarray(whole.astype(self.dtype))

    def integers(self, scaled: Array) -> Array:
        """Return rounded numbers plus the zero point as int32."""
        return np.asarray(floats_to_int32(nearest_half_away(scaled)) + np.int32(self.zero_point))


def eval_rescaled(data: Rescaled, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: every step to float32, then half away. Overflow: the sum wraps int32."""
    real = sum_int32(data.reduced.rows(x)).astype(np.float32)
    if data.rule.divide:
        real = real / np.float32(data.reduced.count)
    return data.codes(real).reshape(data.reduced.shape)


def has_same_quantization(node: Node) -> bool:
    """Return whether input and output have the same scale and zero point."""
    x, y = node.input(0), node.outputs[0]
    return bool(x.scale == y.scale) and x.zero_point == y.zero_point


def eval_mean_of_codes(reduced: ReducedAxes, x: Array, axes: Array) -> Array:
    """Source: Mean<T, int>. Rounding: the quotient towards zero. Overflow: the sum wraps int32."""
    sums = sum_int32(reduced.rows(x))
    quotients = np.sign(sums) * (np.abs(sums) // reduced.count)
    return np.asarray(quotients, x.dtype).reshape(reduced.shape)


def eval_sum_of_codes(reduced: ReducedAxes, x: Array, axes: Array) -> Array:
    """Source: ReduceGeneric. Overflow: the sum wraps the codes' own type."""
    return sum_int32(reduced.rows(x)).astype(x.dtype).reshape(reduced.shape)


def takes(node: Node) -> bool:
    """Return whether XNNPACK takes 8-bit codes: at least one axis, quantized operands, an input with elements."""
    x = node.input(0)
    return is_quantized(x) and is_quantized(node.outputs[0]) and has_axes(node) and min(x.shape, default=1) > 0


def has_axes(node: Node) -> bool:
    """Return whether there is at least one axis."""
    x, axes = node.input(0), node.constant(1).reshape(-1)
    return len(axes) > 0 and not (len(axes) == 1 and int(axes[0]) == 0 and not x.shape)


def takes_floats(node: Node) -> bool:
    """Return whether there is an axis, and the operand is not empty."""
    return has_axes(node) and has_shape(node.input(0), 1)


def as_rows(x: Array) -> Array:
    """Return `x` as (rows, last axis), C-contiguous; a view if it already is."""
    return np.ascontiguousarray(x).reshape(-1 if x.size else 0, x.shape[-1])


def row_maxima(rows: Array) -> Array:
    """Return the largest of each row as a column, at least the type's lowest finite value; NaN is skipped.

    Source: the loops over std::max(max, x) of reference/softmax.h and log_softmax.h.
    """
    return np.asarray(np.fmax.reduce(rows, axis=1, keepdims=True, initial=np.finfo(rows.dtype).min))


def sum_rows(rows: Array) -> Array:
    """Return 0 + x[0] + x[1] + ... of each float32 row as a column, in that order, each sum rounded."""
    sums = np.empty((len(rows), 1), np.float32)
    _sum_rows(rows, sums)
    return sums


@in_pieces(x="r", out="r")
@compiled
def _sum_rows(x: Array, out: Array) -> None:
    """Eval guarantees: `out` is (rows, 1)."""
    for r in range(x.shape[0]):
        total = np.float32(0)
        for c in range(x.shape[1]):
            total += x[r, c]
        out[r, 0] = total


def fixed_point_exps(
    scaling: Multiplier, radius: int, difference_bits: int, sum_bits: int
) -> tuple[Array, Array, Array]:
    """Tabulate by an 8-bit code's distance to its row's largest (0..255): scaled difference, its exp, the summand.

    Scaled differences have `difference_bits` integer bits, exps are Q0.31, summands have `sum_bits` integer bits and
    are 0 beyond `radius`. `scaling` is that of the differences.
    """
    tables = np.zeros((3, 256), np.int32)
    _fill_exps(*scaling, radius, difference_bits, sum_bits, tables)
    return tables[0], tables[1], tables[2]


@compiled
def _fill_exps(mantissa: Int, shift: Int, radius: Int, difference_bits: Int, sum_bits: Int, tables: Array) -> None:
    """Fill the tables. Prepare guarantees: `tables` is (3, 256)."""
    for below in range(256):
        scaled = multiply_greater_than_one(-np.int64(below), mantissa, shift)
        tables[0, below] = scaled
        if below <= radius:
            exp = exp_on_negative_values(scaled, difference_bits, 32)
            tables[1, below] = exp
            tables[2, below] = rescale(exp, 0, sum_bits, 32)
