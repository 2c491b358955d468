"""GATHER, GATHER_ND, SCATTER_ND and segments: slices by position.

GATHER: slices along one dimension, by position.

| operand   | shape                                    | types                                     | quantization |
|-----------|------------------------------------------|-------------------------------------------|--------------|
| x         | at least one dimension; string: a vector | float32, float16, bfloat16, uint8, int4,  | passed by    |
|           |                                          | int8, int16, int32, int64, bool, string   |              |
| positions | any                                      | int16, int32, int64                       |              |
| y         | x[:axis] + positions[batch_dims:] +      | as x                                      | passed by    |
|           | x[axis + 1:]                             |                                           |              |

Options: axis, batch_dims (leading dimensions that x and positions share); negative ones count from the back.
A negative position, or one beyond the dimension, fails the run. Refused: int4 with an odd number of elements behind the
axis, of which the source copies whole bytes only.
Source: LiteRT 2.3, gather.cc Prepare; reference/gather.h Gather.

GATHER_ND: slices by coordinates.

| operand | shape                                  | types                                          | quantization |
|---------|----------------------------------------|------------------------------------------------|--------------|
| x       | at least one dimension                 | float32, float16, bfloat16, uint8, int8,       | passed by    |
|         |                                        | int16, int32, int64, bool, string              |              |
| indices | (..., n), n up to the rank of x        | int16, int32, int64                            |              |
| y       | indices[:-1] + x[n:]                   | as x                                           | passed by    |

A coordinate outside its dimension fails the run.
Source: LiteRT 2.3, gather_nd.cc Prepare; reference_ops.h GatherNd.

STABLEHLO_GATHER: slices of one size, cut at the indices.

| operand | shape                                       | types                     |
|---------|---------------------------------------------|---------------------------|
| x       | any                                         | all of 8, 16, 32, 64 bits |
| starts  | batch..., with one dimension of coordinates | int32, int64              |
| y       | batch and slice dimensions                  | as x                      |

Options: offset_dims (dimensions of y that run along slices), collapsed_slice_dims, start_index_map, index_vector_dim,
slice_sizes. Slices that would reach beyond x are moved back inside.
Source: LiteRT 2.3, stablehlo_gather.cc; tensor_slice_util.cc.

SCATTER_ND: add slices into zeros, by coordinates. STABLEHLO_SCATTER: fold updates into an array, window by window.

| SCATTER_ND | shape                     | types                                    | quantization |
|------------|---------------------------|------------------------------------------|--------------|
| indices    | (..., n)                  | int32                                    |              |
| updates    | indices[:-1] + shape[n:]  | float32, uint8, int8, int32, int64, bool | passed by    |
| shape      | (rank of y)               | int32                                    |              |
| y          | shape                     | as updates                               | passed by    |

| STABLEHLO_SCATTER | shape                                       | types                                     |
|-------------------|---------------------------------------------|-------------------------------------------|
| x                 | any                                         | float16, float32, float64, bool, integers |
| indices           | batch..., with one dimension of coordinates | int32, int64                              |
| updates           | batch and window dimensions                 | as x                                      |
| y                 | as x                                        | as x                                      |

SCATTER_ND: a coordinate outside its dimension fails the run.
STABLEHLO_SCATTER: options update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, index_vector_dim,
update_computation_subgraph_index. Only the names of that subgraph's operators are read; none means replace. Updates
that would land outside x are dropped.
Source: LiteRT 2.3, scatter_nd.cc CheckShapes; reference_ops.h ScatterNd; stablehlo_scatter.cc; tensor_slice_util.cc.

SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN: fold the rows that share an id.

| operand      | SEGMENT_SUM         | UNSORTED_SEGMENT_         | types          |
|--------------|---------------------|---------------------------|----------------|
| x            | N, row...           | ids..., row...            | float32, int32 |
| ids          | N                   | the first dimensions of x | int32          |
| num_segments |                     | one number                | int32          |
| y            | last id + 1, row... | num_segments, row...      | as x           |

SEGMENT_SUM: ids begin at 0 and rise by 0 or 1. BUILTIN_REF lacks it: the kernel is that of the full resolver.
UNSORTED_SEGMENT_: rows with a negative id are skipped. Segments without rows are 0, 1, the lowest or the highest finite
number. int32 wraps; a NaN never wins.
Source: LiteRT 2.3, segment_sum.cc; reference_ops::SegmentSum; unsorted_segment.cc EvalSum, EvalProd, EvalMax, EvalMin;
reference_ops::UnsortedSegmentRef.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import compiled, writes
from tflq.engine.jit.native import MachineCall
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import (
    axis_within,
    integer,
    integers,
    integers_option,
    require_rank,
    require_rank_from,
    require_same_type,
    require_size,
)
from tflq.engine.kernels.families.movement import MOST_BYTES, SIZED, check_positions, coordinates
from tflq.engine.kernels.families.reduction import (
    Fold,
    add,
    at_places,
    by_rows,
    highest,
    larger,
    lowest,
    multiply,
    newest,
    smaller,
)
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, Shape, filling
from tflq.engine.kernels.pairs import NUMBERS
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class OpData:
    """`folded` is the input as (shared, before the axis, axis, behind the axis)."""

    axis: int
    batched: bool
    folded: tuple[int, int, int, int]
    picked: tuple[int, int]  # positions as (shared, the rest)
    shape: Shape  # of the output


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require shared dimensions that agree in size and come before the axis."""
    x, positions = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    if x.type == TensorType.STRING:
        require_rank(node, x, 1)
    axis = axis_within(node, int(node.options["axis"]), len(x.shape))
    shared = int(node.options["batch_dims"])
    shared += len(positions.shape) if shared < 0 else 0
    node.check(0 <= shared <= min(axis, len(positions.shape)), "batch_dims", expected=f"0 to {axis}", got=shared)
    common = x.shape[:shared]
    leading = positions.shape[:shared]
    node.check(common == leading, "shared dimensions", positions, expected=list(common), got=list(leading))
    behind = prod(x.shape[axis + 1 :])
    if x.type == TensorType.INT4 and behind % 2 != 0:
        raise UndefinedResultError("Gather", f"{behind} int4 elements behind the axis: half bytes stay unwritten")
    data = OpData(
        axis=axis,
        batched=shared > 0,
        folded=(prod(common), prod(x.shape[shared:axis]), x.shape[axis], behind),
        picked=(prod(common), prod(positions.shape[shared:])),
        shape=x.shape[:axis] + positions.shape[shared:] + x.shape[axis + 1 :],
    )
    return Prepared((data.shape,), data, eval_gather)


def _gather(data: OpData, x: Array, positions: Array, out: Array | None = None) -> Array:
    groups, before, extent, behind = data.folded
    check_positions("gather", positions, extent)
    if not data.batched:
        return x.take(positions, data.axis, out=out, mode="clip")  # which needs no copy of `out`; none is clipped
    first = np.arange(groups * before).reshape(groups, before, 1) * extent  # slices are counted through
    slices = first + positions.reshape(groups, 1, data.picked[1])
    rows = x.reshape(groups * before * extent, behind)
    flat = None if out is None else out.reshape(slices.size, behind)
    return rows.take(slices.reshape(-1), 0, out=flat, mode="clip").reshape(data.shape)


@filling(lambda data, x, _: (data.shape, x.dtype), once=_gather)
def eval_gather(data: OpData, out: Array, x: Array, positions: Array) -> Call:
    """Source: reference_ops::Gather."""
    _, before, extent, behind = data.folded
    is_short = 0 < out.nbytes <= MOST_BYTES and positions.dtype in _POSITIONS
    if data.batched or not is_short or x.dtype.hasobject:
        return partial(_gather, data, x, positions, out)
    rows, places = x.reshape(before, extent, behind), out.reshape(before, -1, behind)
    take = _take_rows.bound(rows.view(np.uint8), positions.reshape(-1), places.view(np.uint8))
    if isinstance(take, MachineCall):
        take.fail = lambda *_: check_positions("gather", positions, extent)
    return take


#: Positions of other types are left to NumPy.
_POSITIONS = frozenset((np.dtype(np.int32), np.dtype(np.int64)))


@writes("out")
@compiled
def _take_rows(x: Array, positions: Array, out: Array) -> None:
    """Copy rows of bytes.

    Eval guarantees: `x` is (before, extent, bytes), `out` (before, positions, bytes).

    Raises:
        IndexError: A position lies outside of `x`.
    """
    for i in range(positions.size):
        if positions[i] < 0 or positions[i] >= x.shape[1]:
            raise IndexError("gather: a position lies outside")
    for o in range(x.shape[0]):
        for i in range(positions.size):
            row, copy = x[o, positions[i]], out[o, i]
            for byte in range(row.size):
                copy[byte] = row[byte]


_X = "float32|float16|bfloat16|uint8|int4|int8|int16|int32|int64|bool|string"

_GATHER = (Kernel("GATHER", f"{_X} int16|int32|int64 -> {_X}", prepare, (1, 8)),)


def prepare_gather_nd(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the output's shape, which depends on the number of coordinates of an index."""
    x, indices = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    for operand in (x, indices):
        require_rank_from(node, operand, 1)
    depth = indices.shape[-1]
    node.check(depth <= len(x.shape), "coordinates", indices, expected=f"up to {len(x.shape)}", got=depth)
    node.check(0 not in x.shape or 0 in indices.shape, "picks from a tensor without elements", x)
    shape = indices.shape[:-1] + x.shape[depth:]
    return Prepared((shape,), shape, eval_gather_nd)


def eval_gather_nd(shape: Shape, x: Array, indices: Array) -> Array:
    """Source: reference_ops::GatherNd."""
    if indices.shape[-1] == 0:
        return np.broadcast_to(x, shape).copy()
    return x[coordinates("gather_nd", indices, x.shape)]


_GATHER_ND_X = "float32|float16|bfloat16|uint8|int8|int16|int32|int64|bool|string"

_GATHER_ND = (Kernel("GATHER_ND", f"{_GATHER_ND_X} int16|int32|int64 -> {_GATHER_ND_X}", prepare_gather_nd, (1, 6)),)


@dataclass(frozen=True, slots=True, eq=False)
class StablehloGatherData:
    """Which dimension means what."""

    shape: Shape  # of the output
    vector: int  # the dimension of `starts` along which coordinates lie
    batch: Shape  # dimensions of y that are not along slices
    where: tuple[int | None, ...]  # for each dimension of x, its coordinate
    along: tuple[int | None, ...]  # for each dimension of x, the dimension of y that runs along it
    sizes: Shape  # of slices


def prepare_stablehlo_gather(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the number of y's dimensions from the file. Refuse reads outside x or starts, which are undefined."""
    x, starts, y = node.input(0), node.input(1), node.outputs[0]
    require_same_type(node, x, y)
    names = ("offset_dims", "collapsed_slice_dims", "start_index_map", "slice_sizes")
    offset_dims, collapsed, mapped, sizes = (integers_option(node, name) for name in names)
    rank, vector = len(y.shape), int(node.options["index_vector_dim"])
    node.check(len(sizes) == len(x.shape), "length of slice_sizes", expected=len(x.shape), got=len(sizes))
    offsets = tuple(d for d in range(rank) if d in offset_dims)
    batch = tuple(d for d in range(rank) if d not in offset_dims)
    kept = tuple(d for d in range(len(sizes)) if d not in collapsed)
    fits = (
        0 <= vector < len(starts.shape)
        and len(offsets) == len(offset_dims) == len(kept)
        and len(batch) == len(starts.shape) - 1
        and len(mapped) == starts.shape[vector]
        and all(0 <= d < len(sizes) for d in mapped)
        and all(0 <= size <= full for size, full in zip(sizes, x.shape, strict=True))
        and all(sizes[d] > 0 for d in collapsed)
    )
    if not fits:
        raise UndefinedResultError(node.op, "dimension numbers do not fit the operands")
    lengths = dict(zip(batch, starts.shape[:vector] + starts.shape[vector + 1 :], strict=True))
    lengths.update(zip(offsets, (sizes[d] for d in kept), strict=True))
    data = StablehloGatherData(
        shape=tuple(lengths[d] for d in range(rank)),
        vector=vector,
        batch=batch,
        where=tuple({d: k for k, d in enumerate(mapped)}.get(d) for d in range(len(sizes))),
        along=tuple(dict(zip(kept, offsets, strict=True)).get(d) for d in range(len(sizes))),
        sizes=sizes,
    )
    return Prepared((data.shape,), data, evaluate)


def evaluate(data: StablehloGatherData, x: Array, starts: Array) -> Array:
    """Source: EvalWithTypes, ClipStartingIndex. Nothing is rounded."""
    vectors = np.moveaxis(starts, data.vector, -1)
    view = [1] * len(data.shape)
    for dimension, length in zip(data.batch, vectors.shape[:-1], strict=True):
        view[dimension] = length
    coordinates = []
    for full, size, k, d in zip(x.shape, data.sizes, data.where, data.along, strict=True):
        place = np.zeros((1,) * len(view), np.intp)
        if k is not None:
            place = np.clip(vectors[..., k].astype(np.intp), 0, full - size).reshape(view)
        if d is not None:
            place = place + np.arange(size).reshape([-1 if i == d else 1 for i in range(len(view))])
        coordinates.append(place)
    return np.array(np.broadcast_to(x[tuple(coordinates)], data.shape))


_STABLEHLO_GATHER = (Kernel("STABLEHLO_GATHER", f"{SIZED} int32|int64 -> {SIZED}", prepare_stablehlo_gather, (1, 1)),)


def prepare_scatter_nd(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check that indices, updates and shape fit together."""
    indices, updates, operand = (node.input(position) for position in range(3))
    require_same_type(node, updates, node.outputs[0])
    require_rank(node, operand, 1)
    for tensor in (indices, updates):
        require_rank_from(node, tensor, 1)
    shape, depth = integers(node, 2), indices.shape[-1]
    require_size(node, operand, shape)
    node.check(depth <= len(shape), "coordinates", indices, expected=f"up to {len(shape)}", got=depth)
    expected = indices.shape[:-1] + shape[depth:]
    node.check(updates.shape == expected, "shape", updates, expected=list(expected), got=list(updates.shape))
    return Prepared((shape,), shape, eval_scatter_nd)


@filling(lambda shape, _, updates, __: (shape, updates.dtype))
def eval_scatter_nd(shape: Shape, out: Array, indices: Array, updates: Array, _: Array) -> Call:
    """Source: reference_ops::ScatterNd. Rounding: float32 sums in order of the indices. Overflow: integers wrap."""
    depth, count = indices.shape[-1], prod(indices.shape[:-1])
    leading, behind = shape[:depth], prod(shape[depth:])
    rows, updated = (np.asarray(x, order="C").reshape(count, -1 if x.size else 0) for x in (indices, updates))
    slices, places, is_outside = out.reshape(prod(leading), behind), np.empty(count, np.intp), np.zeros(1, np.bool_)
    locate = _locate.bound(rows, np.array(leading, np.intp), places, is_outside)
    fold = by_rows(add).bound(updated, places, slices)

    def call() -> None:
        locate()
        if is_outside[0]:
            is_outside[0] = False
            coordinates("scatter_nd", indices, shape)  # raises with the position
        slices.fill(0)
        fold()

    return call


@writes("places", "is_outside")
@in_pieces(indices="r", places="r")
@compiled
def _locate(indices: Array, sizes: Array, places: Array, is_outside: Array) -> None:
    """Write the slice that each row of coordinates means, and whether any of these is outside.

    Eval guarantees: `sizes` has an entry for each column of `indices`, `places` one for each row.
    """
    for r in range(indices.shape[0]):
        place = 0
        for c in range(indices.shape[1]):
            index = np.int64(indices[r, c])
            if index < 0 or index >= sizes[c]:
                is_outside[0] = True
            place = place * sizes[c] + index
        places[r] = place


_SCATTER_X = "float32|uint8|int8|int32|int64|bool"

_FOLDS: dict[tuple[str, ...], Fold] = {
    (): newest,
    ("STABLEHLO_ADD",): add,
    ("STABLEHLO_MULTIPLY",): multiply,
    ("STABLEHLO_MAXIMUM",): larger,
    ("STABLEHLO_MINIMUM",): smaller,
}


@dataclass(frozen=True, slots=True, eq=False)
class ScatterData:
    """Roles of the dimensions."""

    fold: Fold
    vector: int  # the dimension of `indices` along which coordinates lie
    batch: Shape  # dimensions of updates that are not along windows
    where: tuple[int | None, ...]  # for each dimension of x, its coordinate
    along: tuple[int | None, ...]  # for each dimension of x, the dimension of updates that runs along it


def prepare_scatter(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse models that would read outside the indices."""
    x, indices, updates = (node.input(position) for position in range(3))
    names = node.around().operators(int(node.options["update_computation_subgraph_index"]))
    node.check(
        names in _FOLDS,
        "computation",
        expected="none, or one of STABLEHLO_ADD, _MULTIPLY, _MAXIMUM, _MINIMUM",
        got=list(names),
    )
    window, inserted, mapped = (
        integers_option(node, name)
        for name in ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    )
    rank, vector = len(x.shape), int(node.options["index_vector_dim"])
    batch = tuple(d for d in range(len(updates.shape)) if d not in window)
    kept = tuple(d for d in range(rank) if d not in inserted)
    fits = (
        0 <= vector < len(indices.shape)
        and len(batch) == len(indices.shape) - 1 == len(updates.shape) - len(window)
        and len(window) == len(kept) == rank - len(inserted)
        and len(mapped) == indices.shape[vector]
        and all(0 <= d < rank for d in mapped)
    )
    places = indices.shape[:vector] + indices.shape[vector + 1 :]
    if not fits or any(updates.shape[d] > length for d, length in zip(batch, places, strict=True)):
        raise UndefinedResultError(node.op, "dimension numbers do not fit the operands")
    data = ScatterData(
        fold=_FOLDS[names],
        vector=vector,
        batch=batch,
        where=tuple({d: k for k, d in enumerate(mapped)}.get(d) for d in range(rank)),
        along=tuple(dict(zip(kept, window, strict=True)).get(d) for d in range(rank)),
    )
    return Prepared((x.shape,), data, eval_scatter)


def eval_scatter(data: ScatterData, x: Array, indices: Array, updates: Array) -> Array:
    """Source: EvalWithTypes. Rounding: one per update, of the type, in order. Overflow: integers wrap."""
    out = np.array(x, order="C")
    vectors = np.moveaxis(indices, data.vector, -1)[tuple(slice(updates.shape[d]) for d in data.batch)]
    view = [updates.shape[d] if d in data.batch else 1 for d in range(updates.ndim)]
    places = np.zeros(updates.shape, np.intp)
    inside = np.ones(updates.shape, np.bool_)
    for size, k, d in zip(x.shape, data.where, data.along, strict=True):
        place = np.zeros((1,) * updates.ndim, np.intp)
        if k is not None:
            place = vectors[..., k].astype(np.intp).reshape(view)
        if d is not None:
            place = place + np.arange(updates.shape[d]).reshape([-1 if i == d else 1 for i in range(updates.ndim)])
        places = places * size + place
        inside &= (place >= 0) & (place < size)
    if prod(x.shape):
        at_places(data.fold, out.reshape(-1), places[inside], updates[inside])
    return out


_SCATTER = (
    Kernel("SCATTER_ND", f"int32 {_SCATTER_X} int32 -> {_SCATTER_X}", prepare_scatter_nd, (1, 1), shape_operands=(2,)),
    *tuple(Kernel("STABLEHLO_SCATTER", f"{t} int32|int64 {t} -> {t}", prepare_scatter, (1, 1)) for t in NUMBERS),
)


_TYPES = ("float32", "int32")


@dataclass(frozen=True, slots=True, eq=False)
class Segmented:
    """How rows become segments."""

    op: str
    fold: Fold
    start: Any  # what a segment begins with
    shape: Shape  # of the output: segments, row...


def unsorted_kernels(op: str, fold: Fold, start: Callable[[np.dtype[Any]], Any]) -> tuple[Kernel, ...]:
    """Return the kernels of a fold whose ids come in any order; segments begin with `start(dtype)`."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, ids, number = (node.input(position) for position in range(3))
        prefix = x.shape[: len(ids.shape)]
        node.check(prefix == ids.shape, "shape", ids, expected=list(prefix), got=list(ids.shape))
        node.check(number.shape in ((), (1,)), "shape", number, expected="one number", got=list(number.shape))
        count = integer(node, 2)
        node.check(count >= 0, "number of segments", number, expected="at least 0", got=count)
        shape = (count, *x.shape[len(ids.shape) :])
        return Prepared((shape,), Segmented(op, fold, start(CARRIER[x.type]), shape), eval_unsorted)

    return tuple(Kernel(op, f"{t} int32 int32 -> {t}", prepare, (1, 1), shape_operands=(2,)) for t in _TYPES)


def eval_unsorted(data: Segmented, x: Array, ids: Array, _: Array) -> Array:
    """Source: UnsortedSegmentRef. Rows with a negative id are left out; an id beyond the segments stops the run."""
    flat = ids.reshape(-1)
    check_positions(data.op, np.maximum(flat, 0) if data.shape[0] else flat[flat >= 0], data.shape[0])
    rows, taken = x.reshape(ids.size, prod(data.shape[1:])), flat >= 0
    return fold_rows(data, rows, flat) if taken.all() else fold_rows(data, rows[taken], flat[taken])


def fold_rows(data: Segmented, rows: Array, ids: Array) -> Array:
    """Fold all rows into the segments that `ids` names, in order."""
    out = np.full(data.shape, data.start, rows.dtype)
    if rows.size:
        by_rows(data.fold)(np.ascontiguousarray(rows), ids, out.reshape(len(out), -1))
    return out


def prepare_segments(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse ids that jump or fall."""
    x, ids = node.input(0), node.input(1)
    require_rank(node, ids, 1)
    require_rank_from(node, x, 1)
    node.check(ids.shape[0] == x.shape[0], "size", ids, expected=x.shape[0], got=ids.shape[0])
    values = (-1, *integers(node, 1))
    steps = {b - a for a, b in pairwise(values)}
    node.check(values[:2] in ((-1,), (-1, 0)) and steps <= {0, 1}, "ids", ids, expected="from 0 on, by 0 or 1")
    shape = (values[-1] + 1, *x.shape[1:])
    return Prepared((shape,), Segmented(node.op, add, 0, shape), evaluate_segments)


def evaluate_segments(data: Segmented, x: Array, ids: Array) -> Array:
    """Source: SegmentSum. Rounding: float32 sums in order of the rows. Overflow: int32 wraps."""
    return fold_rows(data, x.reshape(len(ids), prod(x.shape[1:])), ids)


_SEGMENTS = (
    *(Kernel("SEGMENT_SUM", f"{t} int32 -> {t}", prepare_segments, (1, 1), shape_operands=(1,)) for t in _TYPES),
    *unsorted_kernels("UNSORTED_SEGMENT_SUM", add, lambda dtype: dtype.type(0)),
    *unsorted_kernels("UNSORTED_SEGMENT_PROD", multiply, lambda dtype: dtype.type(1)),
    *unsorted_kernels("UNSORTED_SEGMENT_MAX", larger, lowest),
    *unsorted_kernels("UNSORTED_SEGMENT_MIN", smaller, highest),
)

#: The rows of all operators above.
KERNELS = (*_GATHER, *_GATHER_ND, *_STABLEHLO_GATHER, *_SCATTER, *_SEGMENTS)
