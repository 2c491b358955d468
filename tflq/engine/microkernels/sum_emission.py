"""Sums of two codes, each scaled by steps of its own, as LLVM code: a loop over registers of elements.

Nothing here depends on numba, as in `emission`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from llvmlite import ir

from tflq.engine.microkernels.emission import ELEMENTS
from tflq.engine.microkernels.kernel import SIZES, SumKernel
from tflq.engine.microkernels.roundings import Step
from tflq.engine.microkernels.vectors import I8, I32, I64, Value, Vectors, written

#: Bytes of a constant's place.
_PLACE = 8


class SumOperands(NamedTuple):
    """The arguments of a sum's function, as LLVM values: addresses of bytes, counts, scalars."""

    first: Value  # address of the first operand's first code
    second: Value
    constants: Value  # address of places of 8 bytes, see sums.constants_of
    passes: Value  # registers of elements, 1 at least
    zero_point: Value  # int32, as low and high
    low: Value
    high: Value
    out: Value  # address of the first code


def emit_sum(module: ir.Module, kernel: SumKernel, name: str) -> ir.Function:
    """Write the sum into `module` as a function of a name, which takes SumOperands."""
    address = I8.as_pointer()
    kinds = SumOperands(address, address, address, I64, I32, I32, I32, address)
    return written(module, name, kinds, lambda builder, at: _emit(builder, kernel, at), are_apart=False)


class _Constants:
    """The constants of a kernel, each in all lanes, in the order of their places."""

    def __init__(self, v: Vectors, address: Value) -> None:
        self._v, self._address, self._at = v, address, 0

    def take(self, kind: str) -> Value:
        """Load the next one."""
        value = self._v.spread(self._v.load(self._address, self._at, ELEMENTS[kind]))
        self._at += _PLACE
        return value

    def of_steps(self, steps: Iterable[Step]) -> list[list[Value]]:
        """Load those of steps."""
        return [[self.take(kind) for kind in step.types] for step in steps]


def _emit(builder: ir.IRBuilder, kernel: SumKernel, at: SumOperands) -> None:
    """Emit codes = clamp(scale(scale(first) + sign * scale(second)) + zero point), a register at a time."""
    v = Vectors(builder, kernel.lanes)
    constants = _Constants(v, at.constants)
    centring, inputs = [], []
    for steps in (kernel.first, kernel.second):
        centring.append([constants.take("int32"), constants.take("int32")])
        inputs.append(constants.of_steps(steps))
    scaling = constants.of_steps(kernel.steps)
    zero_point, low, high = (v.spread(limit) for limit in (at.zero_point, at.low, at.high))
    before, loop = builder.block, builder.append_basic_block("over_passes")
    builder.branch(loop)
    builder.position_at_end(loop)
    step = builder.phi(I64)
    start = builder.mul(step, ir.Constant(I64, kernel.lanes))
    first = _scale(v, _centre(v, kernel, at.first, start, centring[0]), kernel.first, inputs[0])
    second = _scale(v, _centre(v, kernel, at.second, start, centring[1]), kernel.second, inputs[1])
    total = builder.add(first, second) if kernel.sign > 0 else builder.sub(first, second)
    codes = v.clamp(builder.add(_scale(v, total, kernel.steps, scaling), zero_point), low, high)
    narrow = builder.trunc(codes, ir.VectorType(ELEMENTS[kernel.code], kernel.lanes))
    v.store(narrow, builder.gep(at.out, [builder.mul(start, ir.Constant(I64, SIZES[kernel.code]))]))
    next_step = builder.add(step, ir.Constant(I64, 1))
    step.add_incoming(ir.Constant(I64, 0), before)
    step.add_incoming(next_step, loop)
    after = builder.append_basic_block("end")
    builder.cbranch(builder.icmp_signed("<", next_step, at.passes), loop, after)
    builder.position_at_end(after)


def _centre(v: Vectors, kernel: SumKernel, place: Value, start: Value, constants: list[Value]) -> Value:
    """Emit (code - zero point) * 2**left for a register of codes."""
    zero_point, left = constants
    address = v.builder.gep(place, [v.builder.mul(start, ir.Constant(I64, SIZES[kernel.left]))])
    narrow = v.load(address, 0, ir.VectorType(ELEMENTS[kernel.left], v.lanes))
    codes = (v.builder.zext if kernel.left == "uint8" else v.builder.sext)(narrow, v.int32)
    return v.shift_left(v.builder.sub(codes, zero_point), left)


def _scale(v: Vectors, value: Value, steps: Iterable[Step], constants: list[list[Value]]) -> Value:
    for step, own in zip(steps, constants, strict=True):
        value = getattr(v, step.name)(value, *own)
    return value
