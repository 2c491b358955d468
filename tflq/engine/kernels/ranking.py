"""TOPK_V2, UNIQUE, WHERE, ARG_MAX, ARG_MIN: choose elements.

TOPK_V2: the k largest elements along the last axis and where they lie, largest first.

| operand | shape               | types                                    | quantization  |
|---------|---------------------|------------------------------------------|---------------|
| x       | rank 1 or more      | float32, uint8, int8, int16, int32, int64 | takes no part |
| k       | one element         | int32, int16                             |               |
| values  | x, last axis k      | as x                                     | takes no part |
| indices | x, last axis k      | int32, int16                             |               |

Equal elements come in the order of their indices, NaN after all numbers. Negative k counts as 0.
Source: LiteRT 2.3, topk_v2.cc ResizeOutput, TopContainer.

UNIQUE: the different values of a vector in order of appearance, and for every element which one it is.

| operand | shape             | types                                     |
|---------|-------------------|-------------------------------------------|
| x       | (n)               | float32, uint8, int8, int16, int32, int64 |
| y       | (number of values)| as x                                      |
| index   | (n)               | int32, int64                              |

Options: idx_out_type, which must be the index's type. NaN has no place in the source's ordered map.
Source: LiteRT 2.3, unique.cc EvalImpl.

WHERE: the coordinates of elements that are not zero, in order.

| operand   | shape                  | types                                          |
|-----------|------------------------|------------------------------------------------|
| condition | at least one dimension | bool, float32, int64, int32, int8, uint8,      |
|           |                        | uint32                                         |
| y         | (count, rank)          | int64                                          |

NaN is not zero.
Source: LiteRT 2.3, where.cc; reference_ops.h SelectTrueCoords.

ARG_MAX, ARG_MIN: the index of the largest or smallest element along an axis, the first of equal ones.

| operand | shape          | types                             | quantization |
|---------|----------------|-----------------------------------|--------------|
| x       | rank 1 or more | float32, uint8, int8, int32, bool | ignored      |
| axis    | one element    | int32, int64                      |              |
| y       | x without axis | int32, int64                      |              |

Up to 2.14, floats are compared one after the other with the best so far. NaN in the first place wins, since nothing
compares better; elsewhere it is skipped.
Source: LiteRT 2.3 and TensorFlow 2.14, arg_min_max.cc Prepare, ResizeOutput;
reference/arg_min_max.h ArgMinMax, GetComparefunction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import axis_within, require_rank, require_rank_from, require_same_type
from tflq.engine.kernels.families.movement import INDEX
from tflq.engine.kernels.kernel import Call, Form, Kernel, Node, Prepared, fillings, valid
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER
from tflq.typing import Array

#: Products of the last axis and k up to which insertion is quicker than sorting.
_FEW = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """How many elements, and the type of their indices."""

    k: int
    dtype: np.dtype[Any]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require k within the last axis, and that axis within the range of the indices."""
    x, indices = node.input(0), node.outputs[1]
    value = node.constant(1)
    node.check(value.size == 1, "must have one element", node.input(1), got=value.size)
    require_rank_from(node, x, 1)
    k, last = max(0, int(value.reshape(-1)[0])), x.shape[-1]
    node.check(k <= last, "is larger than the last axis", node.input(1), expected=f"at most {last}", got=k)
    dtype = CARRIER[indices.type]
    node.check(k == 0 or last <= type_range(dtype)[1], "index type is too small", indices, got=last)
    shape = (*x.shape[:-1], k)
    return Prepared((shape, shape), OpData(k, dtype), evaluate, scratch=24 * prod(x.shape))


def _forms(data: OpData, x: Array, k: Array) -> list[Form]:
    shape = (*x.shape[:-1], data.k)
    return [(shape, x.dtype), (shape, data.dtype)]


@fillings(_forms)
def evaluate(data: OpData, outs: Sequence[Array], x: Array, k: Array) -> Call:
    """Source: TopK. No rounding."""
    if x.shape[-1] * data.k <= _FEW and x.size:
        rows = np.asarray(x, order="C").reshape(-1, x.shape[-1])
        values, indices = (out.reshape(len(rows), data.k) for out in outs)
        return _insert_rows.bound(rows, values, indices)

    def call() -> None:
        # ~x is -x - 1: it turns the order of integers around without overflow.
        turned = -x if x.dtype.kind == "f" else ~x
        order = np.argsort(turned, axis=-1, kind="stable")[..., : data.k]
        outs[0][...], outs[1][...] = np.take_along_axis(x, order, axis=-1), order

    return call


@in_pieces(lambda x, values, indices: x.size * values.shape[1], x="r", values="r", indices="r")
@compiled
def _insert_rows(x: Array, values: Array, indices: Array) -> None:
    """Insert the elements of each row one by one among the largest so far, behind those that are as large.

    Eval guarantees: `values` and `indices` are (rows, k), k at most the length of a row.
    """
    k = values.shape[1]
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            place = min(c, k)
            # Numbers go before NaN, which goes nowhere.
            while place > 0 and x[r, c] == x[r, c] and not values[r, place - 1] >= x[r, c]:
                if place < k:
                    values[r, place], indices[r, place] = values[r, place - 1], indices[r, place - 1]
                place -= 1
            if place < k:
                values[r, place], indices[r, place] = x[r, c], c


_TOPK_V2 = (
    *(
        Kernel("TOPK_V2", f"{t} int32|int16 -> {t} int32|int16", prepare, (1, 3), (1,))
        for t in ("float32", "uint8", "int8", "int16", "int32", "int64")
    ),
)


#: Bytes for each value: NumPy's sort with positions, the order of first ones, and at most as many unique values.
_SCRATCH = 60
#: Steps for each value, on average, from which on values are sorted instead of looked up.
_STEPS = 8


def prepare_unique(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare outputs whose number of values only the run determines."""
    x, (values, index) = node.input(0), node.outputs
    require_same_type(node, x, values)
    require_rank(node, x, 1)
    index_type = int(node.options["idx_out_type"])
    node.check(index_type == index.type, "idx_out_type", index, expected=int(index.type), got=index_type)
    scratch = _SCRATCH * math.prod(x.shape)
    return Prepared((None, x.shape), np.dtype(index.type.label), eval_unique, scratch=scratch)


def eval_unique(index_type: np.dtype[np.generic], x: Array) -> tuple[Array, Array]:
    """Source: EvalImpl. Of equal values (0.0 and -0.0) the first one is kept."""
    is_float = x.dtype == np.float32
    if is_float and np.isnan(x).any():
        raise UndefinedResultError("Unique", "NaN among the values")
    keys = (x + np.float32(0)).view(np.int32) if is_float else x  # the sum takes the sign off a zero
    slots = np.zeros(1 << (2 * x.size).bit_length(), np.int32 if x.size < 1 << 31 else np.int64)
    values, first, state = np.empty(x.size, keys.dtype), np.empty(x.size, np.int64), np.zeros(2, np.int64)
    which = np.empty(x.size, index_type)
    _number(keys, 0, slots, values, first, which, state, _STEPS * (x.size + 100))
    if state[1] > _STEPS * (x.size + 100):
        return _sort(index_type, x)
    return x[first[: state[0]]], which


def _sort(index_type: np.dtype[np.generic], x: Array) -> tuple[Array, Array]:
    """Return the same by sorting, which takes the same time for any values."""
    _, first, which = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return x[first[order]], rank[which].astype(index_type)


@in_pieces(16, keys="n", start="n", which="n")
@compiled
def _number(
    keys: Array, start: Int, slots: Array, values: Array, first: Array, which: Array, state: Array, most: Int
) -> None:
    """Fill `which` (N) with the numbers of integer `keys` (N), in order of their appearance.

    `values` and `first` are the values and the positions of the `state[0]` different ones so far. Slots are found by a
    key's digest and hold a number plus one; the next slot is taken if another key is there, which `state[1]` counts. If
    it exceeds `most`, the call ends early. `start` is the position of the first key.

    Eval guarantees: the number of slots is a power of two and larger than that of all keys, for each of which `values`
    and `first` have room.
    """
    mask = slots.size - 1
    for i in range(keys.size):
        key = keys[i]
        low, high = np.int64(key) & 0xFFFFFFFF, (np.int64(key) >> 32) & 0xFFFFFFFF
        slot = ((low * 663608941 + high * 536870909) >> 20) & mask  # the sum is below 2**63
        while slots[slot] > 0 and values[slots[slot] - 1] != key:
            slot = (slot + 1) & mask
            state[1] += 1
        if state[1] > most:
            return
        if slots[slot] == 0:
            values[state[0]] = key
            first[state[0]] = start + i
            state[0] += 1
            slots[slot] = state[0]
        which[i] = slots[slot] - 1


_X = "float32|uint8|int8|int16|int32|int64"

_UNIQUE = (Kernel("UNIQUE", f"{_X} -> {_X} {INDEX}", prepare_unique, (1, 1)),)


def prepare_where(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare an output whose number of rows only the run determines."""
    x = node.input(0)
    require_rank_from(node, x, 1)
    return Prepared((None,), None, eval_where, scratch=coordinates_size)


def coordinates_size(_: None, condition: Array) -> int:
    """Return the bytes of the coordinates, of the places they come from, and of the mask."""
    return 8 * int(np.count_nonzero(condition)) * (condition.ndim + 1) + condition.size


def eval_where(_: None, condition: Array) -> Array:
    """Source: SelectTrueCoords."""
    mask = condition if condition.dtype == np.bool_ else condition != 0  # NumPy looks at booleans faster than numbers
    places = np.flatnonzero(mask)
    out = np.empty((len(places), condition.ndim), np.int64)
    _coordinates(places, np.array(condition.shape, np.int64), out)
    return out


@in_pieces(4, places="r", out="r")
@compiled
def _coordinates(places: Array, shape: Array, out: Array) -> None:
    """Fill `out` (R, D) with the coordinates of `places` (R), in order, of an array of that shape (D).

    The last dimension that is not 1 is walked along, so that the dimensions before it are divided only where a pass
    over it ends.

    Eval guarantees: these shapes, and that an array with places has no dimension of 0.
    """
    axis = len(shape) - 1
    while axis > 0 and shape[axis] == 1:
        axis -= 1
    size, begin = shape[axis], np.int64(0)
    end = begin  # of the pass that `begin` begins
    around = np.zeros(len(shape), np.int64)
    for r in range(places.size):
        place = places[r]
        if place >= end:
            rest = place // size
            begin = rest * size
            end = begin + size
            for d in range(axis - 1, -1, -1):
                above = rest // shape[d]
                around[d] = rest - above * shape[d]
                rest = above
        for d in range(len(shape)):
            out[r, d] = around[d]
        out[r, axis] = place - begin


_WHERE = (Kernel("WHERE", "bool|float32|int64|int32|int8|uint8|uint32 -> int64", prepare_where, (1, 2)),)


AXIS = (1,)
#: Elements that the last axis is searched by at once.
LANES = 4


@dataclass(frozen=True, slots=True, eq=False)
class ArgMaxMinData:
    """Which axis, and which of its elements."""

    find: Callable[..., Any]  # np.argmax or np.argmin
    worst: float  # what NaN counts as
    axis: int
    dtype: np.dtype[Any]


def kernels(op: str, find: Callable[..., Any], worst: float) -> tuple[Kernel, ...]:
    """Return the kernels of `find`; floats that are NaN count as `worst`."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y, where = node.input(0), node.outputs[0], node.input(1)
        value = node.constant(1)
        node.check(value.size == 1, "must have one element", where, got=value.size)
        require_rank_from(node, x, 1)
        axis = axis_within(node, int(value.reshape(-1)[0]), len(x.shape), where)
        node.check(x.shape[axis] > 0, "axis is empty", x, got=list(x.shape))
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        return Prepared((shape,), ArgMaxMinData(find, worst, axis, CARRIER[y.type]), evaluate_arg_max_min)

    types = "float32|uint8|int8|int32|bool int32|int64 -> int32|int64"
    return (Kernel(op, types, prepare, (1, 3), AXIS),)


def evaluate_arg_max_min(data: ArgMaxMinData, x: Array, axis: Array) -> Array:
    """Source: ArgMinMax. The first of equal elements; NaN is skipped, except in the lanes below."""
    if x.shape[data.axis] == 1:
        return np.zeros(x.shape[: data.axis] + x.shape[data.axis + 1 :], data.dtype)
    if x.dtype == np.bool_:
        x = x.view(np.uint8)  # which NumPy searches by vectors
    if x.dtype.kind != "f" or not np.isnan(x).any():
        return np.asarray(data.find(x, axis=data.axis)).astype(data.dtype)
    length, behind = x.shape[data.axis], math.prod(x.shape[data.axis + 1 :])
    if behind == 1 and length >= LANES:
        shape = x.shape[: data.axis] + x.shape[data.axis + 1 :]
        return _in_lanes(data, x.reshape(-1, length)).reshape(shape).astype(data.dtype)
    return np.asarray(_first_number(data, x, data.axis)).astype(data.dtype)


def _first_number(data: ArgMaxMinData, x: Array, axis: int) -> Array:
    """Return the best number's place, 0 if all are NaN. Source: GetComparefunction."""
    absent = np.isnan(x)
    best = data.find(np.where(absent, data.worst, x), axis=axis)
    is_nan = np.take_along_axis(absent, np.expand_dims(best, axis), axis).squeeze(axis)
    return np.asarray(np.where(is_nan, np.argmin(absent, axis=axis), best))


def _in_lanes(data: ArgMaxMinData, x: Array) -> Array:
    """Return the best places of rows (R, N), compared as four lanes and the rest.

    Source: optimized_ops.h ArgMaxVector, ArgMinVector, which both resolvers run, as SSE: an even lane
    that met nothing but NaN stays in the comparison of two lanes, and so can win over numbers.
    """
    whole = x.shape[1] // LANES * LANES
    groups = x[:, :whole].reshape(len(x), -1, LANES)
    place = _first_number(data, groups, 1)
    value = np.take_along_axis(groups, place[:, None, :], 1)[:, 0]
    pair = _better(data, value[:, 0::2], value[:, 1::2])
    winner = _better(data, pair[:, :1], pair[:, 1:])
    first = np.where(value == winner, LANES * place + np.arange(LANES), whole).min(axis=1)
    last = _first_number(data, np.concatenate([winner, x[:, whole:]], axis=1), 1)
    return np.where(last > 0, whole + last - 1, np.where(np.isnan(winner[:, 0]), 0, first))


def _better(data: ArgMaxMinData, a: Array, b: Array) -> Array:
    """Return `b` where it compares better, else `a`: also where one of them is NaN."""
    return np.where(b > a if data.worst < 0 else b < a, b, a)


ARG_MAX = kernels("ARG_MAX", np.argmax, -np.inf)
ARG_MIN = kernels("ARG_MIN", np.argmin, np.inf)


def prepare_in_turn(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    (row,) = ARG_MAX if node.op == "ARG_MAX" else ARG_MIN
    return replace(row.prepare(node, arithmetic), eval=eval_in_turn)


def eval_in_turn(data: ArgMaxMinData, x: Array, axis: Array) -> Array:
    """Return the first of equal elements."""
    absent = np.isnan(x)
    best = data.find(np.where(absent, data.worst, x), axis=data.axis)
    return np.where(absent.take(0, data.axis), 0, best).astype(data.dtype)


_ARG_MAX_MIN = (
    *ARG_MAX,
    *ARG_MIN,
    *valid(
        tflite(until="tflite-2.14"),
        *(
            Kernel(op, "float32 int32|int64 -> int32|int64", prepare_in_turn, (1, 3), AXIS)
            for op in ("ARG_MIN", "ARG_MAX")
        ),
    ),
)

#: The rows of all operators above.
KERNELS = (*_TOPK_V2, *_UNIQUE, *_WHERE, *_ARG_MAX_MIN)
