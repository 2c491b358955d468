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

from tflq.engine.jit.compiled import Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.element_types import SIZED
from tflq.engine.kernels.families.hybrid import block_scales, is_blockwise, read_as_int8
from tflq.engine.kernels.families.indices import check_positions
from tflq.engine.kernels.filling import Call, Form, filling
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape
from tflq.engine.kernels.operands import require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, STORED_BITS, TensorType
from tflq.typing import Array


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
    scales = node.input(1).quantization
    if scales is not None and len(scales.scale) > 1:
        node.reject("several scales", node.input(1), expected="a result of floats", got=node.outputs[0].type.label)
    table = check_table(node)
    node.check(not is_blockwise(table), "quantization", table, expected="per tensor or row", got="scales of blocks")
    require_same_type(node, table, node.outputs[0])
    return Prepared(((*node.input(0).shape, *table.shape[1:]),), None, eval_plain)


def prepare_scaled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one scale for the table, for every row or for every block."""
    table = check_table(node)
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


def check_table(node: Node) -> Operand:
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


def _scaled_form(data: Scaled, indices: Array, table: Array) -> Form:
    return (len(indices), *data.row), data.dtype


@filling(_scaled_form)
def eval_scaled(data: Scaled, out: Array, indices: Array, table: Array) -> Call:
    """Source: EvalHybrid, EvalBlockwise. Rounding: one float32 product; to float16 once more."""
    codes, blocks = read_as_int8(table).reshape(-1), data.scales.shape[1]
    rows = out.reshape(len(indices), blocks, data.block)
    widths = data.per_byte, np.float32(data.unit)

    def call() -> None:
        check_positions("embedding_lookup", indices, table.shape[0])
        if data.dtype == np.float32:
            _scale(indices, rows, codes, data.scales, *widths)
        elif data.block < 1 << (8 // data.per_byte):
            reals = np.empty(rows.shape, np.float32)
            _scale(indices, reals, codes, data.scales, *widths)
            rows[...] = reals
        else:  # a table of all codes for each block
            lowest = -128 // data.unit
            every = np.arange(lowest, -lowest, dtype=np.float32) * np.float32(data.unit)
            reals = (every * data.scales.take(indices, 0)[..., None]).astype(np.float16)
            _choose(indices, rows.view(np.uint16), codes, reals.view(np.uint16), data.per_byte)

    return call


@writes("out")
@in_pieces(lambda indices, out, *_: out.size, indices="n", out="n")
@compiled
def _scale(indices: Array, out: Array, codes: Array, scales: Array, per_byte: Int, unit: Real) -> None:
    """Fill `out` (N, blocks, elements) with the rows at `indices` (N): code times `unit` times the block's scale.

    Eval guarantees: `codes` are whole rows, `scales` (rows, blocks); `indices` are numbers of rows.
    """
    for n in range(out.shape[0]):
        row = np.int64(indices[n])
        for b in range(out.shape[1]):
            start = (row * out.shape[1] + b) * out.shape[2]
            start -= start % per_byte
            scale, part, reals = scales[row, b], codes[start : start + out.shape[2]], out[n, b]
            for k in range(reals.size):
                reals[k] = np.float32(part[k]) * unit * scale


@in_pieces(lambda indices, out, *_: out.size, indices="n", out="n", values="n")
@compiled
def _choose(indices: Array, out: Array, codes: Array, values: Array, per_byte: Int) -> None:
    """Fill `out` (N, blocks, elements) with the `values` (N, blocks, numbers) of codes in the rows at `indices` (N).

    Half of the values, a power of two of them, are those of codes below 0.

    Eval guarantees: `codes` are whole rows; `indices` are numbers of rows.
    """
    lowest = values.shape[2] // 2
    for n in range(out.shape[0]):
        row = np.int64(indices[n])
        for b in range(out.shape[1]):
            start = (row * out.shape[1] + b) * out.shape[2]
            start -= start % per_byte
            part, reals = codes[start : start + out.shape[2]], out[n, b]
            for k in range(reals.size):
                reals[k] = values[n, b, (np.int64(part[k]) + lowest) & (values.shape[2] - 1)]


KERNELS = (
    Kernel("EMBEDDING_LOOKUP", "int32 int8|uint8|int4|int2 -> float32|float16", prepare_scaled, (1, 5)),
    Kernel("EMBEDDING_LOOKUP", f"int32 {SIZED} -> {SIZED}", prepare_plain, (1, 5)),
)
