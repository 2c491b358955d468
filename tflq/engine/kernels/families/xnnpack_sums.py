"""Sums of float32 over axes as XNNPACK adds them on x86-64, or sums of squares.

Neighbouring axes are merged, reduced ones and kept ones. Each stretch of the last reduced axis has a sum of its own,
which is scaled and added to the output. If the axis is the innermost one, several registers take the stretch in turn
and are added in halves; if not, the elements are added one after the other.
Registers: AVX2 has four of 8 lanes. AVX-512 has two of 16 lanes, four for squares; it adds squares, and scaled sums of
registers, by fused multiply-adds.
Source: XNNPACK's reduce-nd.c, normalization.c xnn_normalize_reduction, operator-run.c xnn_compute_contiguous_reduce;
f32-rsum avx_u32_acc4 and avx512f_u32_acc2, f32-rsum2 avx_u32_acc4 and avx512f_u64_acc4, f32-rdsum and f32-rdsum2 7p7x.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.geometry.axes import resolve_axis
from tflq.engine.kernels.kernel import Node, Shape
from tflq.engine.microkernels.flushed import add, begin_flushing, end_flushing, multiply, multiply_add
from tflq.typing import Array

#: The number of lanes of AVX-512.
_AVX512_LANES = 16
#: Elements that are added one after the other in a group. Zeros fill the last one: a negative zero becomes positive.
_GROUP = 7


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums over axes of an operand: `dims` are its merged dimensions, `order` brings the reduced ones to the end."""

    dims: Shape
    order: tuple[int, ...]
    outer: int  # stretches that make one output
    inner: int  # elements of a stretch
    registers: tuple[int, int]  # their number, lanes
    squared: bool
    fused: bool  # squares, and scaled sums of registers
    scale: np.float32

    @classmethod
    def of_node(cls, node: Node, lanes: int) -> Sums:
        """Return the sums or means of a reduction, by registers of that many lanes."""
        x = node.input(0)
        axes = {resolve_axis(node, int(v), len(x.shape), node.input(1)) for v in node.constant(1).reshape(-1)}
        return cls.over(x.shape, axes, lanes, squared=node.is_of_squares, mean=node.op == "MEAN")

    @classmethod
    def over(cls, shape: Shape, axes: set[int], lanes: int, *, squared: bool, mean: bool) -> Sums:
        """Return the sums of an operand of that shape over `axes`, one or more; or their means."""
        grouped = [
            (is_reduced, prod(shape[i] for i in group))
            for is_reduced, group in groupby(range(len(shape)), key=lambda i: i in axes)
        ]
        reduced = [i for i, (is_reduced, _) in enumerate(grouped) if is_reduced]
        kept = [i for i in range(len(grouped)) if i not in reduced]
        sizes = [grouped[i][1] for i in reduced]
        is_innermost = reduced[-1] == len(grouped) - 1
        count = 2 if lanes == _AVX512_LANES and not squared else 4
        return cls(
            dims=tuple(size for _, size in grouped),
            order=(*kept, *reduced),
            outer=prod(sizes[:-1]),
            inner=sizes[-1],
            registers=(count, lanes) if is_innermost else (1, 1),
            squared=squared,
            fused=lanes == _AVX512_LANES,
            scale=np.float32(1) / np.float32(prod(sizes)) if mean else np.float32(1),
        )

    def stretches(self, x: Array) -> Array:
        """Return the operand as (R, outer, inner): what makes each output, in the order of the kept dimensions."""
        return np.ascontiguousarray(x.reshape(self.dims).transpose(self.order)).reshape(-1, self.outer, self.inner)

    def of(self, x: Array) -> Array:
        """Return the sums, flat, in the order of the kept dimensions."""
        stretches = self.stretches(x)
        out = np.empty(len(stretches), np.float32)
        _sum_stretches(stretches, np.empty(self.registers, np.float32), self.squared, self.fused, self.scale, out)
        return out


@in_pieces(lambda x, *_: 4 * x.size, x="r", out="r")
@compiled
def _sum_stretches(x: Array, registers: Array, squared: Int, fused: Int, scale: Real, out: Array) -> None:
    """Fill `out` (R) with the scaled sums of `x` (R, outer, inner).

    Prepare guarantees: these shapes; `registers` is (count, lanes), both powers of two.
    """
    before = begin_flushing()
    for r in range(x.shape[0]):
        total = np.float32(0)
        for o in range(x.shape[1]):
            part = _sum(x[r, o], registers, squared, fused)
            is_once = fused and registers.shape[1] > 1
            total = multiply_add(part, scale, total) if is_once else add(multiply(part, scale), total)
        out[r] = total
    end_flushing(before)


@compiled
def _sum(values: Array, registers: Array, squared: Int, fused: Int) -> Real:
    """Return the sum of a stretch; registers take blocks of it in turn, and the last blocks one each.

    The caller guarantees: there is a register, and it has a lane; both numbers are powers of two.
    """
    registers[:] = 0
    count, lanes = registers.shape
    blocks = values.size // lanes
    rounds = blocks // count * count
    for block in range(blocks):
        register = registers[block % count if block < rounds else block - rounds]
        for i in range(lanes):
            register[i] = _add(values[block * lanes + i], register[i], squared, fused)
    _fold(registers)
    first = registers[0]
    for i in range(values.size - blocks * lanes):
        first[i] = _add(values[blocks * lanes + i], first[i], squared, fused)
    half = lanes // 2
    while half:
        for i in range(half):
            first[i] = add(first[i + half], first[i])
        half //= 2
    if lanes == 1 and values.size % _GROUP:
        return add(np.float32(0), first[0])
    return first[0]


@compiled
def _fold(registers: Array) -> None:
    """Add the registers into the first one, half to half. The caller guarantees: their number is a power of two."""
    half = registers.shape[0] // 2
    while half:
        for j in range(half):
            for i in range(registers.shape[1]):
                registers[j, i] = add(registers[j + half, i], registers[j, i])
        half //= 2


@compiled
def _add(value: Real, total: Real, squared: Int, fused: Int) -> Real:
    """Return the total with one value more, or with its square."""
    if not squared:
        return add(value, total)
    return multiply_add(value, value, total) if fused else add(multiply(value, value), total)
