"""EMBEDDING_LOOKUP: rows of a table, by index.

| operand | shape                                 | types                  | quantization                |
|---------|---------------------------------------|------------------------|-----------------------------|
| indices | (n)                                   | int32                  |                             |
| table   | (rows, ...), at least two dimensions  | every 8 to 64 bit type | none; or per tensor or row  |
| y       | (n, ...)                              | as table, or float32   | passed by                   |

A table of int8, int4 or int2 gives float32 rows: code times scale, zero points 0. An index outside the table fails
the run.
Source: LiteRT 2.3, embedding_lookup.cc Prepare, EvalSimple, EvalHybrid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.kernels.element_types import SIZED
from tflq.kernels.indexing import check_positions
from tflq.kernels.kernel import Array, Kernel, Node, Operand, Prepared
from tflq.kernels.operands import require_rank, require_same_type
from tflq.numerics.arithmetic import Arithmetic


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """Scales of the rows, shaped to broadcast against them."""

    scales: Array


def prepare_plain(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Rows are copied as they are."""
    table = checked_table(node)
    require_same_type(node, table, node.outputs[0])
    return Prepared(((*node.input(0).shape, *table.shape[1:]),), None, eval_plain)


def prepare_scaled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """One scale for the table or one for every row; zero points must be 0."""
    table = checked_table(node)
    scales, zero_points, dimension = scales_of(table)
    node.check(zero_points.size == 0 or int(zero_points[0]) == 0, "zero point", table, expected=0, got=zero_points[:1])
    if len(scales) > 1:
        fits = len(scales) == table.shape[0] and dimension == 0
        node.check(fits, "scales", table, expected=f"{table.shape[0]} along dimension 0", got=len(scales))
    rows = np.broadcast_to(scales, table.shape[:1]).reshape(-1, *(1,) * (len(table.shape) - 1))
    return Prepared(((*node.input(0).shape, *table.shape[1:]),), Scaled(rows), eval_scaled)


def scales_of(table: Operand) -> tuple[Array, Array, int]:
    """Scales (0 where there are none), zero points and the dimension they lie along."""
    q = table.quantization
    if q is None or not len(q.scale):
        return np.zeros(1, np.float32), np.zeros(0, np.int64), 0
    return q.scale, q.zero_point, q.quantized_dimension


def checked_table(node: Node) -> Operand:
    """The table, of at least two dimensions; indices are a vector."""
    table = node.input(1)
    require_rank(node, node.input(0), 1)
    node.check(len(table.shape) >= 2, "number of dimensions", table, expected="at least 2", got=len(table.shape))
    blockwise = table.quantization is not None and table.quantization.details is not None
    node.check(not blockwise, "quantization", table, expected="per tensor or per row", got="other parameters")
    return table


def eval_plain(_: None, indices: Array, table: Array) -> Array:
    """Source: EvalSimple."""
    check_positions("embedding_lookup", indices, table.shape[0])
    return table.take(indices, 0)


def eval_scaled(data: Scaled, indices: Array, table: Array) -> Array:
    """Source: EvalHybrid. Rounding: one float32 product."""
    check_positions("embedding_lookup", indices, table.shape[0])
    return table.take(indices, 0).astype(np.float32) * data.scales.take(indices, 0)


KERNELS = (
    Kernel("EMBEDDING_LOOKUP", "int32 int8|int4|int2 -> float32", prepare_scaled, (1, 5)),
    Kernel("EMBEDDING_LOOKUP", f"int32 {SIZED} -> {SIZED}", prepare_plain, (1, 5)),
)
