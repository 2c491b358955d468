"""FILL, RANGE, ONE_HOT, diagonals, sparse values, and reversed dimensions.

FILL: a tensor of one value.

| operand | shape  | types                          | quantization                    |
|---------|--------|--------------------------------|---------------------------------|
| dims    | (n)    | int32, int64                   |                                 |
| value   | scalar | every 8 to 64 bit type, string | per tensor; int16: zero point 0 |
| y       | dims   | as value                       | as value                        |

Source: LiteRT 2.3, fill.cc Prepare.

RANGE: start, start + delta, ... up to limit, that one left out.

| operand | shape  | types                 |
|---------|--------|-----------------------|
| start   | scalar | float32, int32, int64 |
| limit   | scalar | as start              |
| delta   | scalar | as start              |
| y       | vector | as start              |

Source: LiteRT 2.3, range.cc GetSize, CalculateRange.

ONE_HOT: one of two values, by whether a position is the index.

| operand | shape                          | types                                    |
|---------|--------------------------------|------------------------------------------|
| indices | any                            | int32, int64                             |
| depth   | one element                    | int32                                    |
| on, off | one element                    | float32, int32, int64, int8, uint8, bool |
| y       | indices' with depth at the     | as on                                    |
|         | axis                           |                                          |

Options: axis (-1: behind all others). Indices outside [0, depth) give `off` everywhere; int64 ones wrap to 32 bits
first.
Source: LiteRT 2.3, one_hot.cc OneHotComputeImpl.

MATRIX_DIAG: the last dimension becomes the diagonal of square matrices.

| operand | shape     | types                                             | quantization |
|---------|-----------|---------------------------------------------------|--------------|
| x       | (..., n)  | float32, uint8, int8, int16, int32, uint32, int64 | passed by    |
| y       | (..., n,  | as x                                              | passed by    |
|         | n)        |                                                   |              |

Off the diagonal there are zeros, regardless of the zero point.
Source: LiteRT 2.3, matrix_diag.cc FillDiagImpl.

MATRIX_SET_DIAG: matrices with another diagonal.

| operand  | shape              | types                                             | quantization |
|----------|--------------------|---------------------------------------------------|--------------|
| x        | (..., m, n)        | float32, uint8, int8, int16, int32, uint32, int64 | passed by    |
| diagonal | (..., min of m, n) | as x                                              | passed by    |
| y        | as x               | as x                                              | passed by    |

The source does not look at the diagonal's shape; one that does not fit is refused.
Source: LiteRT 2.3, matrix_set_diag.cc FillDiagImpl.

SPARSE_TO_DENSE: values at given positions, one default everywhere else.

| operand | shape                   | types                              | quantization |
|---------|-------------------------|------------------------------------|--------------|
| indices | scalar, (n) or (n, rank)| int32, int64                       |              |
| shape   | (rank), up to 4         | int32, int64                       |              |
| values  | scalar or (n)           | float32, uint8, int8, int32, int64 | passed by    |
| default | one element             | as values                          | passed by    |
| y       | shape                   | as values                          | passed by    |

Of several values for one position the last one counts. A position outside the shape fails the run. Up to 2.14, one
value for several positions is refused.
Source: LiteRT 2.3 and TensorFlow 2.14, sparse_to_dense.cc CheckDimensionsMatch; reference_ops.h SparseToDense.

REVERSE_SEQUENCE: turn the first n elements of a dimension around, with an n for every batch.

| operand | shape               | types                               | quantization |
|---------|---------------------|-------------------------------------|--------------|
| x       | any                 | float32, uint8, int16, int32, int64 | passed by    |
| lengths | (size of batch_dim) | int32, int64                        |              |
| y       | as x                | as x                                | passed by    |

Options: seq_dim, batch_dim, neither negative. The source checks the first length alone; a later one that is too large
writes outside the tensor.
Source: LiteRT 2.3, reverse_sequence.cc; reference_ops.h ReverseSequence.

REVERSE_V2: turn dimensions around.

| operand | shape              | types                                                    | quantization |
|---------|--------------------|----------------------------------------------------------|--------------|
| x       | up to 8 dimensions | float32, float16, bfloat16, uint8, int8, int16, int32,   | passed by    |
|         |                    | int64, bool                                              |              |
| axes    | (n), n >= 1        | int32                                                    |              |
| y       | as x               | as x                                                     | passed by    |

The axes, negative ones counted from the back, must follow one another without a gap. Up to 2.14 only the first counts.
Source: LiteRT 2.3, reverse.cc Prepare, Eval; reference/reverse.h Reverse. TensorFlow 2.14, reverse.cc Eval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.jit.compiled import compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import (
    axis_within,
    integer,
    integers,
    require_rank,
    require_rank_from,
    require_same_quantization,
    require_same_type,
    require_size,
    require_zero_point_zero,
)
from tflq.engine.kernels.families.movement import INDEX, SIZED, coordinates
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, Shape, filling, valid
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.rounding import INT32_MAX
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the dims as the output's shape."""
    dims, value, y = node.input(0), node.input(1), node.outputs[0]
    require_rank(node, dims, 1)
    require_rank(node, value, 0)
    require_same_type(node, value, y)
    require_same_quantization(node, value, y)
    if value.type == TensorType.INT16:
        require_zero_point_zero(node, value)
    shape = integers(node, 0)
    require_size(node, dims, shape)
    return Prepared((shape,), shape, eval_fill)


def eval_fill(shape: Shape, dims: Array, value: Array) -> Array:
    """Source: reference_ops::Fill."""
    return np.full(shape, value, value.dtype)


_X = f"{SIZED}|string"

_FILL = (Kernel("FILL", f"{INDEX} {_X} -> {_X}", prepare, (1, 5), shape_operands=(0,)),)


def prepare_range(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the length; float32 counts with one subtraction and one division in float32."""
    operands = [node.input(position) for position in range(3)]
    require_same_type(node, *operands, node.outputs[0])
    for operand in operands:
        require_rank(node, operand, 0)
    start, limit, delta = (node.constant(position)[()] for position in range(3))
    towards = bool((start >= limit and delta < 0) or (start <= limit and delta > 0))
    node.check(towards, "start, limit and delta", expected="delta towards limit", got=[start, limit, delta])
    if operands[0].type.label == "float32":
        steps = float(abs((limit - start) / delta))
        node.check(steps <= INT32_MAX, "length", expected=f"up to {INT32_MAX}", got=steps)
        length = math.ceil(steps)
    else:
        length = -(-abs(int(limit) - int(start)) // abs(int(delta)))
    node.check(length <= INT32_MAX, "length", expected=f"up to {INT32_MAX}", got=length)
    return Prepared(((length,),), length, eval_range)


def eval_range(length: int, start: Array, limit: Array, delta: Array) -> Array:
    """Source: CalculateRange. Rounding: float32 sums one after the other, in order. Overflow: integers wrap."""
    steps = np.full(length, delta, start.dtype)
    steps[:1] = start
    return np.add.accumulate(steps, dtype=start.dtype)


_RANGE = tuple(
    Kernel("RANGE", f"{t} {t} {t} -> {t}", prepare_range, (1, 2), shape_operands=(0, 1, 2))
    for t in ("float32", "int32", "int64")
)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The output's shape, and the number of elements before and in the new dimension, and behind it."""

    shape: Shape
    blocks: tuple[int, int, int]


def prepare_one_hot(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the new dimension's place and size."""
    indices, on, off = node.input(0), node.input(2), node.input(3)
    require_same_type(node, on, off, node.outputs[0])
    for operand in (on, off):
        node.check(np.prod(operand.shape) == 1, "number of elements", operand, expected=1, got=list(operand.shape))
    depth, rank = integer(node, 1), len(indices.shape)
    require_size(node, node.input(1), (depth,))
    axis = int(node.options["axis"])
    axis = rank if axis == -1 else axis
    node.check(0 <= axis <= rank, "axis", expected=f"-1 to {rank}", got=axis)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    blocks = prod(indices.shape[:axis]), depth, prod(indices.shape[axis:])
    return Prepared((shape,), OpData(shape, blocks), eval_one_hot)


@filling(lambda data, indices, depth, on, off: (data.shape, on.dtype))
def eval_one_hot(data: OpData, out: Array, indices: Array, depth: Array, on: Array, off: Array) -> Call:
    """Source: OneHotComputeImpl."""
    outer, _, inner = data.blocks
    places = np.asarray(indices, order="C").reshape(outer, inner)
    return _mark.bound(places, on.reshape(-1), off.reshape(-1), out.reshape(data.blocks))


@writes("out")
@in_pieces(lambda places, on, off, out: out.size, places="o", out="o")
@compiled
def _mark(places: Array, on: Array, off: Array, out: Array) -> None:
    """Compute out[o, d, i] = on where places[o, i], as int32, is d, else off.

    Prepare guarantees: `places` is (outer, inner), `out` (outer, depth, inner); `on` and `off` have one element.
    """
    yes, no = on[0], off[0]
    for o in range(out.shape[0]):
        for d in range(out.shape[1]):
            for i in range(out.shape[2]):
                out[o, d, i] = yes if np.int32(places[o, i]) == d else no


_ONE_HOT_X = "float32|int32|int64|int8|uint8|bool"

_ONE_HOT = (
    Kernel(
        "ONE_HOT",
        f"{INDEX} int32 {_ONE_HOT_X} {_ONE_HOT_X} -> {_ONE_HOT_X}",
        prepare_one_hot,
        (1, 1),
        shape_operands=(1,),
    ),
)


def prepare_matrix_diag(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare one more dimension."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    require_rank_from(node, x, 1)
    shape = (*x.shape, x.shape[-1])
    return Prepared((shape,), shape, eval_matrix_diag, scratch=8 * shape[-1])


def eval_matrix_diag(shape: Shape, x: Array) -> Array:
    """Source: FillDiagImpl."""
    out = np.zeros(shape, x.dtype)
    positions = np.arange(shape[-1])
    out[..., positions, positions] = x
    return out


_MATRIX_X = "float32|uint8|int8|int16|int32|uint32|int64"

_MATRIX_DIAG = (Kernel("MATRIX_DIAG", f"{_MATRIX_X} -> {_MATRIX_X}", prepare_matrix_diag, (1, 1)),)


def prepare_matrix_set_diag(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one diagonal for every matrix."""
    x, diagonal = node.input(0), node.input(1)
    require_same_type(node, x, diagonal, node.outputs[0])
    require_rank_from(node, x, 2)
    length = min(x.shape[-2:])
    expected = (*x.shape[:-2], length)
    node.check(diagonal.shape == expected, "shape", diagonal, expected=list(expected), got=list(diagonal.shape))
    return Prepared((x.shape,), length, eval_matrix_set_diag)


def eval_matrix_set_diag(length: int, x: Array, diagonal: Array) -> Array:
    """Source: FillDiagImpl."""
    out = x.copy()
    positions = np.arange(length)
    out[..., positions, positions] = diagonal
    return out


_MATRIX_SET_DIAG = (
    Kernel("MATRIX_SET_DIAG", f"{_MATRIX_X} {_MATRIX_X} -> {_MATRIX_X}", prepare_matrix_set_diag, (1, 1)),
)


MAX_RANK = 4


@dataclass(frozen=True, slots=True)
class SparseToDenseData:
    """The output's shape; indices as (n, rank)."""

    shape: Shape
    table: tuple[int, int]


def prepare_sparse_to_dense(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one index for every dimension of the output and one value for every index."""
    indices, operand, values, default = (node.input(position) for position in range(4))
    require_same_type(node, values, default, node.outputs[0])
    require_rank(node, indices, 0, 2)
    require_rank(node, operand, 1)
    require_rank(node, values, 0, 1)
    node.check(prod(default.shape) == 1, "number of elements", default, expected=1, got=list(default.shape))
    shape = integers(node, 1)
    require_size(node, operand, shape)
    node.check(len(shape) <= MAX_RANK, "number of dimensions", operand, expected=f"up to {MAX_RANK}", got=len(shape))
    count, rank = indices.shape if len(indices.shape) == 2 else (prod(indices.shape), 1)
    node.check(rank == len(shape), "coordinates", indices, expected=len(shape), got=rank)
    fits = values.shape in ((), (count,))
    node.check(fits, "number of values", values, expected=f"1 or {count}", got=list(values.shape))
    return Prepared((shape,), SparseToDenseData(shape, (count, rank)), eval_sparse_to_dense)


def eval_sparse_to_dense(data: SparseToDenseData, indices: Array, shape: Array, values: Array, default: Array) -> Array:
    """Source: reference_ops::SparseToDense."""
    out = np.full(data.shape, default.reshape(()), values.dtype)
    out[coordinates("sparse_to_dense", indices.reshape(data.table), data.shape)] = values
    return out


_SPARSE_TO_DENSE_X = "float32|uint8|int8|int32|int64"
ROWS = (
    Kernel(
        "SPARSE_TO_DENSE",
        f"{INDEX} {INDEX} {_SPARSE_TO_DENSE_X} {_SPARSE_TO_DENSE_X} -> {_SPARSE_TO_DENSE_X}",
        prepare_sparse_to_dense,
        (1, 3),
        shape_operands=(1,),
    ),
)


def prepare_one_each(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse one value for several positions."""
    indices, values = node.input(0), node.input(2)
    count = prod(indices.shape[:1])
    node.check(bool(values.shape) or count == 1, "number of values", values, expected=count, got="a scalar")
    return prepare_sparse_to_dense(node, arithmetic)


_SPARSE_TO_DENSE = (
    *ROWS,
    *valid(tflite(until="tflite-2.14"), *(replace(row, prepare=prepare_one_each) for row in ROWS)),
)


@dataclass(frozen=True, slots=True, eq=False)
class ReverseSequenceData:
    """The shape as (before, first of both axes, between, second, behind), and whether the batch is the first."""

    blocks: tuple[int, int, int, int, int]
    is_batch_first: bool


def prepare_reverse_sequence(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one length for every batch."""
    x, lengths = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, lengths, 1)
    sequence, batch, rank = int(node.options["seq_dim"]), int(node.options["batch_dim"]), len(x.shape)
    dims = 0 <= sequence < rank and 0 <= batch < rank and sequence != batch
    node.check(dims, "seq_dim and batch_dim", expected=f"two of 0 to {rank - 1}", got=[sequence, batch])
    expected = (x.shape[batch],)
    node.check(lengths.shape == expected, "shape", lengths, expected=list(expected), got=list(lengths.shape))
    first, second = sorted((sequence, batch))
    between = prod(x.shape[first + 1 : second])
    blocks = prod(x.shape[:first]), x.shape[first], between, x.shape[second], prod(x.shape[second + 1 :])
    return Prepared((x.shape,), ReverseSequenceData(blocks, batch < sequence), eval_reverse_sequence)


@filling(lambda data, x, lengths: (x.shape, x.dtype))
def eval_reverse_sequence(data: ReverseSequenceData, out: Array, x: Array, lengths: Array) -> Call:
    """Source: reference_ops::ReverseSequence. A length of 0 or less turns nothing around."""
    source, target = (np.asarray(a, order="C").reshape(data.blocks) for a in (x, out))
    size = data.blocks[3 if data.is_batch_first else 1]

    def call() -> None:
        if lengths.size and lengths.max() > size:
            raise UndefinedResultError("ReverseSequence", f"length {lengths.max()} of a sequence of {size}")
        _reverse(source, lengths, data.is_batch_first, target)

    return call


@in_pieces(source="o", target="o")
@compiled
def _reverse(source: Array, lengths: Array, is_batch_first: bool, target: Array) -> None:
    """Turn the first lengths[b] moments around, of arrays (outer, batch, between, time, inner), or time before batch.

    Eval guarantees: both arrays have that shape, there is a length for every batch, and none is beyond the time.
    """
    outer, firsts, between, seconds, inner = source.shape
    for o in range(outer):
        for first in range(firsts):
            for m in range(between):
                for second in range(seconds):
                    b, t = (first, second) if is_batch_first else (second, first)
                    length = np.int64(lengths[b])
                    origin = length - 1 - t if t < length else t
                    f, s = (first, origin) if is_batch_first else (origin, second)
                    for i in range(inner):
                        target[o, first, m, second, i] = source[o, f, m, s, i]


_REVERSE_SEQUENCE_X = "float32|uint8|int16|int32|int64"

_REVERSE_SEQUENCE = (
    Kernel(
        "REVERSE_SEQUENCE", f"{_REVERSE_SEQUENCE_X} {INDEX} -> {_REVERSE_SEQUENCE_X}", prepare_reverse_sequence, (1, 1)
    ),
)


def prepare_reverse_v2(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Sort the axes; refuse none at all, which is undefined in the source."""
    x, operand = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, operand, 1)
    require_rank(node, x, 0, 8)
    axes = tuple(sorted(axis_within(node, axis, len(x.shape)) for axis in integers(node, 1)))
    node.check(bool(axes), "number of axes", operand, expected="at least 1", got=0)
    follow = axes == tuple(range(axes[0], axes[0] + len(axes)))
    node.check(follow, "axes", operand, expected="one after the other", got=list(axes))
    return Prepared((x.shape,), axes, eval_reverse)


def eval_reverse(axes: tuple[int, ...], x: Array, _: Array) -> Array:
    """Source: reference_ops::Reverse."""
    return np.flip(x, axes).copy()


_REVERSE_V2_X = "float32|float16|bfloat16|uint8|int8|int16|int32|int64|bool"
REVERSE_V2_ROWS = (
    Kernel("REVERSE_V2", f"{_REVERSE_V2_X} int32 -> {_REVERSE_V2_X}", prepare_reverse_v2, (1, 4), shape_operands=(1,)),
)


def prepare_first_axis(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the first axis only; the release ignores further ones."""
    x, operand = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, operand, 1)
    require_rank(node, x, 1, 8)
    axes = integers(node, 1)
    node.check(len(axes) > 0, "number of axes", operand, expected="at least 1", got=0)
    return Prepared((x.shape,), (axis_within(node, axes[0], len(x.shape)),), eval_reverse)


_REVERSE_V2 = (
    *REVERSE_V2_ROWS,
    *valid(tflite(until="tflite-2.14"), *(replace(row, prepare=prepare_first_axis) for row in REVERSE_V2_ROWS)),
)

#: The rows of all operators above.
KERNELS = (
    *_FILL,
    *_RANGE,
    *_ONE_HOT,
    *_MATRIX_DIAG,
    *_MATRIX_SET_DIAG,
    *_SPARSE_TO_DENSE,
    *_REVERSE_SEQUENCE,
    *_REVERSE_V2,
)
