"""EMBEDDING_LOOKUP_SPARSE: rows of a table, weighted and added up by a sparse tensor of row numbers.

| operand | shape                     | types   | quantization |
|---------|---------------------------|---------|--------------|
| ids     | (M)                       | int32   | none         |
| indices | (M, R), without the last: where each id goes | int32 | none |
| shape   | (R)                       | int32   | none         |
| weights | (M)                       | float32 | none         |
| table   | (rows, ...)               | float32 | none         |
| y       | shape[:-1] + table[1:]    | float32 | none         |

Options: combiner: SUM, MEAN (divided by the sum of the weights), SQRTN (by the root of the sum of their squares). Sums
are divided whenever the place changes, so indices should be in order. An id outside the table fails the run; an index
outside the shape is refused, as LiteRT then divides memory that is not its own.
Source: LiteRT 2.3, embedding_lookup_sparse.cc Eval, FinalizeAggregation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.indices import check_positions
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import integers, require_rank, require_size
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir.schema import enum
from tflq.typing import Array

_SUM, _MEAN, _SQRTN = (enum("CombinerType")[name] for name in ("SUM", "MEAN", "SQRTN"))


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """`strides` turns an index into a place, in rows of the output."""

    combiner: int
    places: int
    strides: Array
    shape: Shape


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require as many ids as indices and weights."""
    ids, indices, shape, weights, table = (node.input(position) for position in range(5))
    for operand, rank in ((ids, 1), (indices, 2), (shape, 1), (weights, 1)):
        require_rank(node, operand, rank)
    node.check(len(table.shape) >= 2, "number of dimensions", table, expected="at least 2", got=len(table.shape))
    for operand in (indices, weights):
        node.check(operand.shape[0] == ids.shape[0], "entries", operand, expected=ids.shape[0], got=operand.shape[0])
    node.check(shape.shape[0] == indices.shape[1], "rank", shape, expected=indices.shape[1], got=shape.shape[0])
    node.check(shape.shape[0] >= 1, "rank", shape, expected="at least 1", got=0)
    kept = integers(node, 2)[:-1]
    require_size(node, node.outputs[0], kept)
    strides = np.array([prod(kept[i + 1 :]) for i in range(len(kept))], np.int64)
    output_shape = kept + table.shape[1:]
    return Prepared(
        (output_shape,), OpData(int(node.options["combiner"]), prod(kept), strides, output_shape), eval_sparse
    )


def eval_sparse(data: OpData, ids: Array, indices: Array, _: Array, weights: Array, table: Array) -> Array:
    """Evaluate in float32: one product and one sum for each element, in the order of the entries."""
    check_positions("embedding_lookup_sparse", ids, len(table))
    places = indices[:, :-1].astype(np.int64) @ data.strides
    if np.any((places < 0) | (places >= data.places)):
        raise UndefinedResultError("embedding_lookup_sparse", f"an index lies outside {list(data.shape)}")
    rows = np.ascontiguousarray(table).reshape(len(table), -1)
    out = np.zeros((data.places, rows.shape[1]), np.float32)
    state, sums = np.zeros(2, np.int64), np.zeros(2, np.float32)
    _combine(np.ascontiguousarray(ids), places, np.ascontiguousarray(weights), rows, data.combiner, out, state, sums)
    _finish(data.combiner, state[1], sums[0], sums[1], out, state[0])
    return out.reshape(data.shape)


@in_pieces(lambda ids, places, weights, rows, *_: len(ids) * rows[:1].size, ids="i", places="i", weights="i")
@compiled
def _combine(
    ids: Array, places: Array, weights: Array, rows: Array, combiner: Int, out: Array, state: Array, sums: Array
) -> None:
    """Add weighted rows. `state` is the place that is summed up and its number of rows.

    `sums` (float32) are those of weights and of their squares.

    Prepare guarantees: `ids`, `places` and `weights` have the same size, rows of `rows` and `out` the same length.
    Eval guarantees: ids name rows of `rows`, places rows of `out`.
    """
    for i in range(len(ids)):
        if places[i] != state[0]:
            _finish(combiner, state[1], sums[0], sums[1], out, state[0])
            state[0], state[1] = places[i], 0
            sums[0], sums[1] = np.float32(0), np.float32(0)
        state[1] += 1
        sums[1] += weights[i] * weights[i]
        sums[0] += weights[i]
        for k in range(rows.shape[1]):
            out[state[0], k] += rows[ids[i], k] * weights[i]


@compiled
def _finish(combiner: Int, count: Int, total: Real, squares: Real, out: Array, place: Int) -> None:
    """Divide a sum as `combiner` demands. The caller guarantees: `place` is a row of `out` if `count` is not 0."""
    if combiner == _SUM or count == 0:
        return
    divisor: Real = np.float32(1)
    if combiner == _MEAN:
        divisor = total
    elif combiner == _SQRTN:
        divisor = np.sqrt(squares)
    for k in range(out.shape[1]):
        out[place, k] /= divisor


KERNELS = (Kernel("EMBEDDING_LOOKUP_SPARSE", "int32 int32 int32 float32 float32 -> float32", prepare, (1, 1), (2,)),)
