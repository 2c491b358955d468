"""REDUCE_MAX and REDUCE_MIN by XNNPACK: codes move, regardless of the output's scale; on x86-64 also of float32.

Operands, options and refusals: tflq/engine/kernels/reduce_max_min/reference.py, except that scales may differ.
Floats are compared in the order in which XNNPACK adds them (tflq/engine/kernels/families/xnnpack_sums.py), but by four
registers of every width, whose lanes all take what is left of a stretch. Of two that are equal or include NaN the later
one stays, and infinities begin.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode; XNNPACK's rminmax kernels of qs8 and qu8, f32-rmax and f32-rmin
avx_u32_acc4 and avx512f_u64_acc4, f32-rdmax and f32-rdmin 2p2x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.delegation import delegate
from tflq.engine.kernels.families.reduction import AXES, reduced_axes
from tflq.engine.kernels.families.xnnpack_reductions import takes, takes_floats
from tflq.engine.kernels.families.xnnpack_sums import Sums
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.reduce_max_min import reference
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.flushing import subnormals_as_zeros
from tflq.typing import Array


def moving(row: Kernel) -> Kernel:
    """Return the row with an output that is read as quantized like its input."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        (y,) = node.outputs
        alike = replace(node, outputs=(replace(y, quantization=node.input(0).quantization),))
        return row.prepare(alike, arithmetic)

    return Kernel(row.op, row.types, prepare, row.versions, AXES)


@dataclass(frozen=True, slots=True, eq=False)
class Extremes:
    """The largest or smallest elements over axes."""

    merged: Sums  # the order of the elements
    pick: np.ufunc  # np.maximum or np.minimum
    before: np.ufunc  # np.greater or np.less: whether the earlier element stays
    start: np.float32
    shape: Shape

    def later(self, a: Array, b: Array) -> Array:
        """Return the elements that MAXPS or MINPS returns."""
        return np.where(self.before(a, b), a, b)


def _prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Merge the axes."""
    is_max = node.op == "REDUCE_MAX"
    pick, before = (np.maximum, np.greater) if is_max else (np.minimum, np.less)
    start, shape = np.float32(-np.inf if is_max else np.inf), reduced_axes(node).shape
    merged = Sums.of_node(node, arithmetic.xnnpack_lanes)
    return Prepared((shape,), Extremes(merged, pick, before, start, shape), evaluate)


def evaluate(data: Extremes, x: Array, axes: Array) -> Array:
    """Rounding: none; subnormal numbers are zeros. The order decides about NaN and signs of zero only."""
    rows = data.merged.stretches(subnormals_as_zeros(x))
    found = data.pick.reduce(rows, axis=(1, 2))
    unsure = np.isnan(found) | (found == 0)
    if unsure.any():
        found[unsure] = _in_order(data, rows[unsure])
    return np.asarray(found.reshape(data.shape))


def _in_order(data: Extremes, rows: Array) -> Array:
    """Return the extremes of rows (R, outer, inner), one comparison after the other."""
    found, lanes = np.full((len(rows), 1), data.start), data.merged.registers[1]
    for stretch in rows.transpose(1, 0, 2):
        whole = stretch.shape[1] // lanes * lanes
        blocks = stretch[:, :whole].reshape(len(rows), -1, lanes)
        registers = np.repeat(np.repeat(found, lanes, 1)[:, None], 4, 1)
        rounds = blocks.shape[1] // 4 if lanes > 1 else 0
        for block in range(rounds):
            registers = data.later(registers, blocks[:, 4 * block : 4 * block + 4])
        pairs = data.later(registers[:, ::2], registers[:, 1::2])
        found = data.later(pairs[:, 0], pairs[:, 1])
        for block in range(4 * rounds, blocks.shape[1]):
            found = data.later(found, blocks[:, block])
        for left in range(whole, stretch.shape[1]):
            found = data.later(found, stretch[:, left : left + 1])
        while found.shape[1] > 1:
            half = found.shape[1] // 2
            found = data.later(found[:, :half], found[:, half:])
    return found[:, 0]


_FLOATS = (
    Kernel(row.op, row.types, _prepare, row.versions, AXES)
    for row in (*reference.REDUCE_MAX, *reference.REDUCE_MIN)
    if row.types == "float32 int32 -> float32"
)
KERNELS = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *(delegate(row, takes_floats) for row in _FLOATS)),
    *valid(
        xnnpack("litert-2.1"),
        *(
            delegate(moving(row), takes)
            for row in (*reference.REDUCE_MAX, *reference.REDUCE_MIN)
            if row.types in ("uint8 int32 -> uint8", "int8 int32 -> int8")
        ),
    ),
)
