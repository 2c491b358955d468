"""Sums and differences of quantized inputs: what ADD and SUB share.

Both inputs are brought to a common scale, twice the larger of theirs and 2**20 (int16: 2**15) times finer; the sum is
brought to the output's. What an input's code becomes on the common scale is tabulated when the operator is prepared.
Source: LiteRT 2.3, add.cc Prepare, sub.cc PrepareGeneralSubOp, PrepareInt16SubOpPOT.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import code_range
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.movement import Copying
from tflq.engine.kernels.geometry.axes import broadcast_shape, spread
from tflq.engine.kernels.kernel import Call, Node, Operand, Prepared, Shape, filling, in_turn
from tflq.engine.microkernels.sums import ScaledSums, Term, sums_of
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, Shift
from tflq.engine.numerics.multiplier import check_log2
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_away, wrap_int32
from tflq.engine.numerics.stage_roundings import DoubleRounding, scale_twice, tabulate
from tflq.engine.numerics.stages import OutputPipeline
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Bytes of an output whose accumulators are kept from run to run.
_KEPT = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the general form."""

    first: Array  # by code of the first input (as unsigned): int32 on the common scale
    second: Array  # the same of the second input; negated for a difference
    pipeline: OutputPipeline  # common scale -> codes
    shape: Shape
    #: All of the above in registers, where that is exact and the processor has a kernel for it. Data that `replace`
    #: makes has none, because it may no longer be the same.
    sums: ScaledSums | None = field(default=None, init=False)


@dataclass(frozen=True, slots=True, eq=False)
class PotData:
    """Constants of the int16 form whose scales are powers of two."""

    first_shift: Shift  # to the right, LSB of first input -> LSB of output
    second_shift: Shift
    sign: int  # of the second input
    clamp: Clamp  # LSB of output
    shape: Shape


def prepare_general(node: Node, arithmetic: Arithmetic, sign: int) -> Prepared:
    """Prepare a + sign * b. Twice the larger input scale and 2**20 * output scale are float32.

    Quotients are float64; those of a difference have the arithmetic's `difference_scale_type`.
    """
    a, b, y = both(node)
    dtype = np.dtype(y.type.label)
    shape = broadcast_shape(node, a, b)
    left_shift = 15 if dtype == np.int16 else 20
    twice = common_scale(a, b)
    real = np.float64 if sign > 0 else arithmetic.difference_scale_type
    output = smaller_than_one(np.float64(real(twice) / real(np.float32(1 << left_shift) * y.scale)))
    pipeline = OutputPipeline(arithmetic.requantize(output), y.zero_point, code_range(node, y, dtype), dtype)
    reals = [np.float64(real(operand.scale) / real(twice)) for operand in (a, b)]
    first, second = (term_of(operand, arithmetic, of, left_shift) for operand, of in zip((a, b), reals, strict=True))
    data = OpData(
        first=scale_codes(a, arithmetic, reals[0], left_shift),
        second=sign * scale_codes(b, arithmetic, reals[1], left_shift),
        pipeline=pipeline,
        shape=shape,
    )
    object.__setattr__(data, "sums", sums_of(first, second, sign, pipeline))
    return Prepared((shape,), data, eval_general)


def common_scale(a: Operand, b: Operand) -> np.float64:
    """Return twice the larger input scale: a float32 product, widened."""
    return np.float64(np.float32(2) * max(a.scale, b.scale))


def smaller_than_one(real: np.float64) -> np.float64:
    """Return `real`, which must lie strictly between 0 and 1. Source: QuantizeMultiplierSmallerThanOneExp's checks."""
    if not 0.0 < real < 1.0:
        raise UndefinedResultError("QuantizeMultiplierSmallerThanOneExp", f"the real multiplier is {real}")
    return real


def term_of(operand: Operand, arithmetic: Arithmetic, real: np.float64, left_shift: int) -> Term:
    """Return an operand of a sum in registers; scale_codes tabulates the same."""
    stage = arithmetic.requantize(smaller_than_one(real))
    return Term(np.dtype(operand.type.label), int(operand.zero_point), left_shift, stage)


def scale_codes(operand: Operand, arithmetic: Arithmetic, real: np.float64, left_shift: int) -> Array:
    """Tabulate by code (as unsigned): (code - zero point) * 2**left_shift * real, as the runtime requantizes."""
    shifted = centre_codes(operand) << left_shift
    return tabulate(arithmetic.requantize(smaller_than_one(real)), shifted.astype(np.int32))


def centre_codes(operand: Operand) -> Array:
    """Tabulate by code (as unsigned): code - zero point, int64."""
    dtype = np.dtype(operand.type.label)
    codes = np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}").view(dtype)
    return codes.astype(np.int64) - operand.zero_point


@filling(lambda data, *_: (data.shape, data.pipeline.dtype))
def eval_general(data: OpData, out: Array, a: Array, b: Array) -> Call:
    """Source: AddElementwise, SubElementwise. Rounding: each input's, then the output's. Overflow: none."""
    if data.sums is not None and a.size == b.size == out.size:
        return data.sums.into(a.reshape(-1), b.reshape(-1), out.reshape(-1))

    def add(a: Array, b: Array, accumulator: Array) -> Call:
        return _add_looked_up.bound(unsigned(a), unsigned(b), data.first, data.second, accumulator)

    def add_scaled(a: Array, b: Array, constants: tuple[int, ...]) -> Call:
        return _add_scaled.bound(unsigned(a), unsigned(b), data.first, data.second, *constants, out.reshape(-1))

    return accumulated(add, add_scaled, data.pipeline, out, a, b)


def accumulated(
    accumulate: Callable[[Array, Array, Array], Call],
    fused: Callable[[Array, Array, tuple[int, ...]], Call],
    pipeline: OutputPipeline,
    out: Array,
    a: Array,
    b: Array,
) -> Call:
    """Return the call that adds two operands (int32, flat), spread to the shape of `out`, through a pipeline.

    `fused` does both at once, with the constants of `scale_twice`, zero point and limits.
    """
    stage = pipeline.stage
    if out.nbytes <= _KEPT or (isinstance(stage, DoubleRounding) and a.size == b.size == out.size):
        calls: list[Call] = []
        a, b = _spread_by(calls, a, out), _spread_by(calls, b, out)
        if isinstance(stage, DoubleRounding):
            constants = (*stage.of_one(), int(pipeline.zero_point), *pipeline.clamp)
            return in_turn([*calls, fused(a, b, constants)])
        accumulator = np.empty(out.size, np.int32)
        return in_turn([*calls, accumulate(a, b, accumulator), pipeline.into(accumulator, out)])

    def call() -> None:
        accumulator = np.empty(out.size, np.int32)
        accumulate(spread(a, out.shape), spread(b, out.shape), accumulator)()
        pipeline.into(accumulator, out)()

    return call


def _spread_by(calls: list[Call], x: Array, out: Array) -> Array:
    """Return `x` if it has as many elements as `out`, else an array that one more call fills with `x` repeated."""
    if x.size == out.size:
        return x
    repeated = np.empty(out.shape, x.dtype)
    calls.append(Copying(x, repeated))
    return repeated


def unsigned(x: Array) -> Array:
    """Return codes as unsigned ones, flat: indices of tables."""
    return x.reshape(-1).view(f"u{x.dtype.itemsize}")


@writes("out")
@in_pieces(a="r", b="r", out="r")
@compiled
def _add_looked_up(a: Array, b: Array, first: Array, second: Array, out: Array) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size; tables have an entry for every unsigned code."""
    for i in range(len(out)):
        out[i] = wrap_int32(np.int64(first[a[i]]) + np.int64(second[b[i]]))


@writes("out")
@in_pieces(4, frees_threads=True, a="r", b="r", out="r")
@compiled
def _add_scaled(
    a: Array,
    b: Array,
    first: Array,
    second: Array,
    mantissa: Int,
    left: Int,
    offset: Int,
    below: Int,
    right: Int,
    zero_point: Int,
    low: Int,
    high: Int,
    out: Array,
) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size; tables have an entry for every unsigned code."""
    for i in range(out.size):
        total = wrap_int32(np.int64(first[a[i]]) + np.int64(second[b[i]]))
        out[i] = clamp(wrap_int32(scale_twice(total, mantissa, left, offset, below, right) + zero_point), low, high)


def has_pot_scales(node: Node) -> bool:
    """Return whether the options ask for shifts, and all three scales are powers of two (to 1e-3 of an octave)."""
    return bool(node.options["pot_scale_int16"]) and all(check_log2(o.scale)[1] for o in both(node))


def prepare_pot(node: Node, sign: int) -> Prepared:
    """Prepare y = a + sign * b with shifts: at most one input is shifted, and only to the right."""
    a, b, y = both(node)
    shape = broadcast_shape(node, a, b)
    clamp = code_range(node, y, np.int16)
    logs = [check_log2(operand.scale)[0] for operand in (a, b, y)]
    first, second = logs[2] - logs[0], logs[2] - logs[1]
    node.check(min(first, second) == 0, "one input must have the output's scale, the other a finer one", y)
    if max(first, second) > 15:
        raise UndefinedResultError("RoundingDivideByPOT", f"int16 shifted by {max(first, second)} bits")
    return Prepared((shape,), PotData(Shift(first), Shift(second), sign, clamp, shape), eval_pot)


def eval_pot(data: PotData, a: Array, b: Array) -> Array:
    """Source: Add (int16), Sub16. Rounding: half away, of the shifted input. Overflow: saturates in the clamp."""
    out = np.empty(data.shape, np.int16)
    _add_shifted(
        spread(a, data.shape).reshape(-1),
        spread(b, data.shape).reshape(-1),
        int(data.first_shift),
        int(data.second_shift),
        data.sign,
        *data.clamp,
        out.reshape(-1),
    )
    return out


@in_pieces(2, a="r", b="r", out="r")
@compiled
def _add_shifted(
    a: Array, b: Array, first_shift: Int, second_shift: Int, sign: Int, low: Int, high: Int, out: Array
) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size."""
    for i in range(len(out)):
        first = divide_by_pot_half_away(np.int64(a[i]), first_shift)
        second = divide_by_pot_half_away(np.int64(b[i]), second_shift)
        out[i] = clamp(first + sign * second, low, high)


def without_broadcast(node: Node) -> None:
    """Refuse operands that are repeated: the source's form walks all three tensors side by side."""
    a, b, y = both(node)
    sizes = {int(np.prod(o.shape)) for o in (a, b, replace(y, shape=broadcast_shape(node, a, b)))}
    node.check(len(sizes) == 1, "shapes must agree in the power-of-two form", b, expected=a.shape, got=b.shape)
