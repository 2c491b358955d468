"""One tile of float32 sums as LLVM code: a loop over blocks of k, in it one over k, with all sums in registers.

A fused tile has one block, whose sums begin with the bias.
"""

from __future__ import annotations

from typing import NamedTuple

from llvmlite import ir

from tflq.engine.microkernels import flushed_emission
from tflq.engine.microkernels.kernel import FloatTile
from tflq.engine.microkernels.vectors import FLOAT, I8, I64, Value, Vectors, written


class Operands(NamedTuple):
    """The arguments of a tile's function, as LLVM values: addresses of bytes, distances of rows in bytes, scalars."""

    rows: Value  # address of the first row's first value
    row_step: Value
    weights: Value  # address of the panel
    length: Value  # K
    block: Value
    biases: Value  # address of the first column's
    low: Value
    high: Value
    out: Value  # address of the first row's first sum
    out_step: Value
    count: Value  # number of rows; those beyond repeat the last one


def emit_function(module: ir.Module, tile: FloatTile, name: str) -> ir.Function:
    """Write the tile into `module` as a function of a name, which takes Operands."""
    address, emit = I8.as_pointer(), _emit_fused if tile.fused else _emit
    kinds = Operands(address, I64, address, I64, I64, address, FLOAT, FLOAT, address, I64, I64)
    return written(module, name, kinds, lambda builder, at: emit(builder, tile, at))


def _numbers(builder: ir.IRBuilder, tile: FloatTile, at: Operands) -> list[Value]:
    """Emit the number of each row of the tile, at most the last row's."""
    last = builder.sub(at.count, ir.Constant(I64, 1))
    return [_smaller(builder, ir.Constant(I64, r), last) for r in range(tile.rows)]


def _emit_fused(builder: ir.IRBuilder, tile: FloatTile, at: Operands) -> None:
    before = flushed_emission.begin(builder)
    v, kind = Vectors(builder, tile.lanes), ir.VectorType(FLOAT, tile.lanes)
    numbers = _numbers(builder, tile, at)
    starts = [builder.gep(at.rows, [builder.mul(at.row_step, number)]) for number in numbers]
    biases = [v.load(at.biases, 4 * tile.lanes * i, kind) for i in range(tile.vectors)] * tile.rows
    first, over_k, after = builder.block, builder.append_basic_block("over_k"), builder.append_basic_block("finish")
    builder.branch(over_k)

    builder.position_at_end(over_k)
    k, sums = builder.phi(I64), [builder.phi(kind) for _ in biases]
    following = _one_k(v, tile, at, starts, k, sums)
    next_k = builder.add(k, ir.Constant(I64, 1))
    _join(k, (ir.Constant(I64, 0), first), (next_k, over_k))
    for total, bias, end in zip(sums, biases, following, strict=True):
        _join(total, (bias, first), (end, over_k))
    builder.cbranch(builder.icmp_signed("<", next_k, at.length), over_k, after)

    builder.position_at_end(after)
    _write(v, tile, at, numbers, following)
    flushed_emission.end(builder, before)


def _emit(builder: ir.IRBuilder, tile: FloatTile, at: Operands) -> None:
    v, kind = Vectors(builder, tile.lanes), ir.VectorType(FLOAT, tile.lanes)
    numbers = _numbers(builder, tile, at)
    starts = [builder.gep(at.rows, [builder.mul(at.row_step, number)]) for number in numbers]
    zeros = [ir.Constant(kind, [0.0] * tile.lanes)] * (tile.rows * tile.vectors)
    before, over_blocks = builder.block, builder.append_basic_block("over_blocks")
    over_k, behind = builder.append_basic_block("over_k"), builder.append_basic_block("add")
    builder.branch(over_blocks)

    builder.position_at_end(over_blocks)
    first, totals = builder.phi(I64), [builder.phi(kind) for _ in zeros]
    last = _smaller(builder, builder.add(first, at.block), at.length)
    builder.branch(over_k)

    builder.position_at_end(over_k)
    k, sums = builder.phi(I64), [builder.phi(kind) for _ in zeros]
    following = _one_k(v, tile, at, starts, k, sums)
    next_k = builder.add(k, ir.Constant(I64, 1))
    _join(k, (first, over_blocks), (next_k, over_k))
    for total, begin, end in zip(sums, zeros, following, strict=True):
        _join(total, (begin, over_blocks), (end, over_k))
    builder.cbranch(builder.icmp_signed("<", next_k, last), over_k, behind)

    builder.position_at_end(behind)
    added = [builder.fadd(total, part) for total, part in zip(totals, following, strict=True)]
    _join(first, (ir.Constant(I64, 0), before), (last, behind))
    for total, begin, end in zip(totals, zeros, added, strict=True):
        _join(total, (begin, before), (end, behind))
    after = builder.append_basic_block("finish")
    builder.cbranch(builder.icmp_signed("<", last, at.length), over_blocks, after)

    builder.position_at_end(after)
    biases = [v.load(at.biases, 4 * tile.lanes * i, kind) for i in range(tile.vectors)] * tile.rows
    _write(v, tile, at, numbers, [builder.fadd(total, bias) for total, bias in zip(added, biases, strict=True)])


def _write(v: Vectors, tile: FloatTile, at: Operands, numbers: list[Value], totals: list[Value]) -> None:
    """Emit the clamp of all sums, and write them."""
    builder, size = v.builder, 4 * tile.lanes
    low, high = v.spread(at.low), v.spread(at.high)
    for r, number in enumerate(numbers):
        target = builder.gep(at.out, [builder.mul(at.out_step, number)])
        for i, value in enumerate(totals[r * tile.vectors : (r + 1) * tile.vectors]):
            floored = builder.select(builder.fcmp_ordered("<", value, low), low, value)
            v.store(builder.select(builder.fcmp_ordered("<", high, floored), high, floored), target, size * i)


def _one_k(v: Vectors, tile: FloatTile, at: Operands, starts: list[Value], k: Value, sums: list[Value]) -> list[Value]:
    """Emit the sums with one more product each: rounded, then added and rounded again, or fused with one rounding."""
    builder, kind = v.builder, ir.VectorType(FLOAT, tile.lanes)
    panel = builder.gep(at.weights, [builder.mul(k, ir.Constant(I64, 4 * tile.columns))])
    weights = [v.load(panel, 4 * tile.lanes * i, kind) for i in range(tile.vectors)]
    place = builder.mul(k, ir.Constant(I64, 4))
    following: list[Value] = []
    for r, start in enumerate(starts):
        value = v.spread(v.load(builder.gep(start, [place]), 0, FLOAT))
        for i, weight in enumerate(weights):
            total = sums[r * tile.vectors + i]
            fused = tile.fused and flushed_emission.multiply_add(builder, value, weight, total)
            following.append(fused or builder.fadd(total, builder.fmul(value, weight)))
    return following


def _smaller(builder: ir.IRBuilder, a: Value, b: Value) -> Value:
    return builder.select(builder.icmp_signed("<", a, b), a, b)


def _join(phi: Value, *incoming: tuple[Value, Value]) -> None:
    for value, block in incoming:
        phi.add_incoming(value, block)
