"""EMBEDDING_LOOKUP: rows of a table, by index.

| operand | shape                                | types                   | quantization                            |
|---------|--------------------------------------|-------------------------|-----------------------------------------|
| indices | (n)                                  | int32                   |                                         |
| table   | (rows, ...), at least two dimensions | every 8 to 64 bit type  | none; or per tensor, row or block       |
| y       | (n, ...)                             | as table, or a float    | passed by                               |

A table of int8, uint8 (read as int8), int4 or int2 gives rows of float32 or float16: code times scale, first zero point
0 for float32. Scales of blocks along rows (float16, in a tensor of their own) go with int4 and int2. Rows and blocks of
narrow types are read from the byte in which they begin, even where they begin in its middle.
An index outside the table fails the run.
Source: LiteRT 2.3, embedding_lookup.cc Prepare, EvalSimple, EvalHybrid, EvalBlockwise, Unpack4Bit, Unpack2Bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.ir import CARRIER, STORED_BITS, TensorType
from tflq.kernels.families.element_types import SIZED
from tflq.kernels.families.hybrid import block_scales, is_blockwise, read_as_int8
from tflq.kernels.families.indices import check_positions
from tflq.kernels.kernel import Array, Kernel, Node, Operand, Prepared, Shape
from tflq.kernels.operands import require_rank, require_same_type
from tflq.numerics.arithmetic import Arithmetic


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """How rows become reals."""

    row: Shape  # shape of a row
    block: int  # elements that share a scale
    scales: Array  # (rows, blocks), float32: real units per LSB, divided by `unit`
    per_byte: int  # codes in a byte
    unit: int  # what the source has narrow codes multiplied by
    dtype: np.dtype[Any]  # of the output


def prepare_plain(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare to copy rows as they are."""
    table = checked_table(node)
    node.check(not is_blockwise(table), "quantization", table, expected="per tensor or row", got="scales of blocks")
    require_same_type(node, table, node.outputs[0])
    return Prepared(((*node.input(0).shape, *table.shape[1:]),), None, eval_plain)


def prepare_scaled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one scale for the table, for every row or for every block."""
    table = checked_table(node)
    length = math.prod(table.shape[1:])
    if is_blockwise(table):
        scales, block = block_scales(node, table, length)
    else:
        scales, block = row_scales(node, table), length
    bits = STORED_BITS[table.type]
    data = Scaled(
        row=table.shape[1:],
        block=block,
        scales=scales / np.float32(2 ** (8 - bits)),
        per_byte=8 // bits,
        unit=2 ** (8 - bits),
        dtype=CARRIER[node.outputs[0].type],
    )
    return Prepared(((*node.input(0).shape, *table.shape[1:]),), data, eval_scaled)


def row_scales(node: Node, table: Operand) -> Array:
    """Return the scales as (rows, 1), float32."""
    rows, q = table.shape[0], table.quantization
    if q is None or not len(q.scale):
        return np.zeros((rows, 1), np.float32)
    if node.outputs[0].type == TensorType.FLOAT32:
        node.check(int(q.zero_point[0]) == 0, "zero point", table, expected=0, got=q.zero_point[:1])
    if len(q.scale) == 1:
        return np.full((rows, 1), table.scale, np.float32)
    fits = len(q.scale) == rows and q.quantized_dimension == 0 and len(q.zero_point) in (1, rows)
    node.check(fits, "scales", table, expected=f"{rows} along dimension 0", got=len(q.scale))
    return q.scale.astype(np.float32)[:, None]


def checked_table(node: Node) -> Operand:
    """Return the table, of at least two dimensions; require a vector of indices."""
    table = node.input(1)
    require_rank(node, node.input(0), 1)
    node.check(len(table.shape) >= 2, "number of dimensions", table, expected="at least 2", got=len(table.shape))
    return table


def eval_plain(_: None, indices: Array, table: Array) -> Array:
    """Source: EvalSimple, which leaves the output as it was where the table has no rows."""
    if not table.shape[0] and indices.size:
        raise UndefinedResultError("embedding_lookup", "rows of a table without rows")
    check_positions("embedding_lookup", indices, table.shape[0])
    return table.take(indices, 0)


def eval_scaled(data: Scaled, indices: Array, table: Array) -> Array:
    """Source: EvalHybrid, EvalBlockwise. Rounding: one float32 product; to float16 once more."""
    check_positions("embedding_lookup", indices, table.shape[0])
    scales = data.scales.take(indices, 0)
    starts = indices.astype(np.int64)[:, None] * math.prod(data.row) + np.arange(scales.shape[1]) * data.block
    starts -= starts % data.per_byte
    codes = read_as_int8(table).reshape(-1).take(starts[..., None] + np.arange(data.block))
    reals = codes.astype(np.float32) * np.float32(data.unit) * scales[..., None]
    return np.asarray(reals, data.dtype).reshape(len(indices), *data.row)


KERNELS = (
    Kernel("EMBEDDING_LOOKUP", "int32 int8|uint8|int4|int2 -> float32|float16", prepare_scaled, (1, 5)),
    Kernel("EMBEDDING_LOOKUP", f"int32 {SIZED} -> {SIZED}", prepare_plain, (1, 5)),
)
