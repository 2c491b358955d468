"""Sums over taps of a line as LLVM code: a loop over passes, in it one over pairs of taps, then the steps of a stage.

Nothing here depends on numba, as in `emission`.
"""

from __future__ import annotations

from typing import NamedTuple

from llvmlite import ir

from tflq.engine.microkernels.emission import DOTS, ELEMENTS
from tflq.engine.microkernels.kernel import SIZES, TapKernel
from tflq.engine.microkernels.vectors import I8, I16, I32, I64, Value, Vectors, written


class LineOperands(NamedTuple):
    """The arguments of a line's function, as LLVM values: addresses of bytes, counts, scalars."""

    codes: Value  # address of the code that a tap without offset reads for the line's first element
    offsets: Value  # address of the taps' offsets, int64 elements
    pairs: Value  # of taps, 1 at least
    weights: Value
    constants: Value
    period: Value  # after this many passes weights and constants repeat
    first: Value  # number of the first pass within the period
    passes: Value  # 1 at least
    zero_point: Value  # int32, as low and high
    low: Value
    high: Value
    out: Value  # address of the line's first element


def emit_line(module: ir.Module, kernel: TapKernel, name: str) -> ir.Function:
    """Write the line into `module` as a function of a name, which takes LineOperands."""
    address = I8.as_pointer()
    kinds = LineOperands(address, address, I64, address, address, I64, I64, I64, I32, I32, I32, address)
    return written(module, name, kinds, lambda builder, at: _emit(builder, kernel, at))


def _number(value: int) -> Value:
    return ir.Constant(I64, value)


def _emit(builder: ir.IRBuilder, kernel: TapKernel, at: LineOperands) -> None:
    """Emit the loop over passes: sums over taps, then the steps, then codes in their order."""
    v = Vectors(builder, kernel.form.lanes)
    zero_point = v.spread(at.zero_point)
    words = sum(SIZES[kind] for kind in kernel.constants) * kernel.width
    before, loop = builder.block, builder.append_basic_block("over_passes")
    builder.branch(loop)
    builder.position_at_end(loop)
    step, phase = builder.phi(I64), builder.phi(I64)
    step.add_incoming(_number(0), before)
    phase.add_incoming(at.first, before)
    constants = builder.gep(at.constants, [builder.mul(phase, _number(words))])
    sums = _sums(v, kernel, at, step, phase, constants)
    codes = _scale(v, kernel, sums, constants, zero_point, (at.low, at.high))
    v.store(codes, builder.gep(at.out, [builder.mul(step, _number(kernel.width * SIZES[kernel.code]))]))
    next_step, following = builder.add(step, _number(1)), builder.add(phase, _number(1))
    step.add_incoming(next_step, builder.block)
    is_over = builder.icmp_signed("==", following, at.period)
    phase.add_incoming(builder.select(is_over, _number(0), following), builder.block)
    after = builder.append_basic_block("end")
    builder.cbranch(builder.icmp_signed("<", next_step, at.passes), loop, after)
    builder.position_at_end(after)


def _sums(v: Vectors, kernel: TapKernel, at: LineOperands, step: Value, phase: Value, constants: Value) -> list[Value]:
    """Emit both registers of sums after the loop over pairs of taps, which begins with the biases."""
    builder, width, dot = v.builder, kernel.width, DOTS[kernel.form.dot]
    half = 2 * width  # bytes of a register of int16
    pairs = ir.VectorType(I16, width)
    codes = builder.gep(at.codes, [builder.mul(step, _number(width * SIZES[kernel.left]))])
    own = builder.gep(at.weights, [builder.mul(builder.mul(phase, at.pairs), _number(2 * half))])
    biases = [v.load(constants, 4 * v.lanes * register, v.int32) for register in range(2)]
    before, loop = builder.block, builder.append_basic_block("over_taps")
    builder.branch(loop)
    builder.position_at_end(loop)
    pair = builder.phi(I64)
    running = [builder.phi(v.int32) for _ in biases]
    taps = [_seen(v, kernel, codes, at.offsets, pair, tap) for tap in range(2)]
    weights = builder.gep(own, [builder.mul(pair, _number(2 * half))])
    following = []
    for register, total in enumerate(running):
        lanes = kernel.order[register * v.lanes : (register + 1) * v.lanes]
        mask = ir.Constant(ir.VectorType(I32, width), [i + tap * width for i in lanes for tap in range(2)])
        both = builder.shuffle_vector(taps[0], taps[1], mask)
        following.append(dot(v, total, both, v.load(weights, half * register, pairs)))
    next_pair = builder.add(pair, _number(1))
    pair.add_incoming(_number(0), before)
    pair.add_incoming(next_pair, loop)
    for phi, begin, end in zip(running, biases, following, strict=True):
        phi.add_incoming(begin, before)
        phi.add_incoming(end, loop)
    after = builder.append_basic_block("scale")
    builder.cbranch(builder.icmp_signed("<", next_pair, at.pairs), loop, after)
    builder.position_at_end(after)
    return following


def _seen(v: Vectors, kernel: TapKernel, codes: Value, offsets: Value, pair: Value, tap: int) -> Value:
    """Load the codes that a tap reads, as int16."""
    builder, width = v.builder, kernel.width
    place = builder.gep(offsets, [builder.mul(pair, _number(16))])
    offset = builder.mul(v.load(place, 8 * tap, I64), _number(SIZES[kernel.left]))
    narrow = v.load(builder.gep(codes, [offset]), 0, ir.VectorType(ELEMENTS[kernel.left], width))
    if kernel.left == "int16":
        return narrow
    widen = builder.sext if kernel.left == "int8" else builder.zext
    return widen(narrow, ir.VectorType(I16, width))


def _scale(
    v: Vectors, kernel: TapKernel, sums: list[Value], constants: Value, zero_point: Value, limits: tuple[Value, Value]
) -> Value:
    """Emit the steps on both registers, and return one vector of codes, of 16 bits at most, in the order of the line.

    `limits` are int32 within the range of the codes.
    """
    builder, width = v.builder, kernel.width
    scaled = []
    for register, total in enumerate(sums):
        offset = 4 * width
        for step in kernel.steps:
            values = []
            for kind in step.types:
                own = ir.VectorType(ELEMENTS[kind], v.lanes)
                values.append(v.load(constants, offset + register * v.lanes * SIZES[kind], own))
                offset += width * SIZES[kind]
            total = getattr(v, step.name)(total, *values)
        scaled.append(builder.add(total, zero_point))
    if kernel.form.saturates:  # in the order of `kernel.order`
        whole = v.narrowed_pair(*scaled)
        short = Vectors(builder, width)
        whole = short.clamp(whole, *(short.spread(builder.trunc(limit, I16)) for limit in limits))
    else:
        mask = ir.Constant(ir.VectorType(I32, width), [kernel.order.index(i) for i in range(width)])
        spread = [v.spread(limit) for limit in limits]
        whole = builder.shuffle_vector(*(v.clamp(total, *spread) for total in scaled), mask)
    code = ir.VectorType(ELEMENTS[kernel.code], width)
    return whole if whole.type == code else builder.trunc(whole, code)
