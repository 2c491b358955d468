"""Sums of two operands' codes, each scaled by a stage of its own, and through an output pipeline, in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.native import Unavailable
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.microkernels import kernel as called
from tflq.engine.microkernels.kernel import Arguments, SumKernel, VectorForm, choose, through
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, VectorStep
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An operand of a sum: what its codes become on the scale of the sum."""

    codes: np.dtype[Any]
    zero_point: int  # LSB of the operand
    left: int  # bits that centred codes are shifted to the left before they are scaled
    stage: OutputStage  # of one multiplier

    @property
    def largest(self) -> int:
        """The largest magnitude before scaling."""
        info = np.iinfo(self.codes)
        return max(abs(int(info.min) - self.zero_point), abs(int(info.max) - self.zero_point)) << self.left

    @property
    def largest_scaled(self) -> int:
        """A bound of the magnitude after scaling, which may round away from 0 twice."""
        return int(np.ceil(self.largest * float(np.abs(self.stage.real).max()))) + 2


@dataclass(frozen=True, slots=True, eq=False)
class ScaledSums:
    """Sums bound to a kernel."""

    kernel: SumKernel
    address: int  # of the kernel
    constants: Array  # see constants_of
    zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output

    def into(self, a: Array, b: Array, out: Array) -> Callable[[], None]:
        """Return the call that fills `out` with the sums of `a` and `b`; all are flat and of the same size.

        Codes are passed as unsigned ones, so that one function serves all types of a size.
        """
        codes = [x.view(f"u{x.itemsize}") for x in (a, b, out)]
        constants = self.constants, int(self.zero_point), *self.clamp
        return sums_into.bound(*codes[:2], self.address, self.kernel.lanes, *constants, codes[2])


def sums_of(
    first: Term, second: Term, sign: int, pipeline: OutputPipeline, form: VectorForm | None = None
) -> ScaledSums | None:
    """Prepare first + sign * second, then `pipeline`, which scales all elements alike.

    Both operands have the same type of codes. Return None if the result would not be exact, or if this processor has no
    form, which is its best unless it is given.
    """
    form = form or choose(True)
    of_first, of_second = (term.stage.scaling(term.largest) for term in (first, second))
    scaling = pipeline.stage.scaling(first.largest_scaled + second.largest_scaled)
    if form is None or of_first is None or of_second is None or scaling is None:
        return None
    kernel = SumKernel(
        form.lanes, first.codes.name, of_first.steps, of_second.steps, sign, scaling.steps, pipeline.dtype.name
    )
    try:
        address = sum_into.address(kernel)
    except Unavailable:
        return None
    placed: list[Any] = []
    for term, scaled in ((first, of_first), (second, of_second)):
        placed += [np.int32(term.zero_point), np.int32(term.left), *(values[0] for values in scaled.constants)]
    constants = constants_of([*placed, *(values[0] for values in scaling.constants)])
    return ScaledSums(kernel, address, constants, pipeline.zero_point, pipeline.clamp)


def constants_of(values: list[Any]) -> Array:
    """Return NumPy scalars in places of 8 bytes each, as int64: zero point, shift and steps' constants of the first
    operand, those of the second, then those of the sum.
    """
    places = np.zeros((len(values), 8), np.uint8)
    for place, value in zip(places, values, strict=True):
        place[: value.itemsize] = np.frombuffer(value.tobytes(), np.uint8)
    return places.reshape(-1).view(np.int64)


def definition(kernel: SumKernel) -> Callable[..., None]:
    """Return the definition of a sum on scalars, with the parameters of `sum_into` from `a` on."""

    def define(
        a: Array,
        a_at: Int,
        b: Array,
        b_at: Int,
        constants: Array,
        passes: Int,
        zero_point: Int,
        low: Int,
        high: Int,
        out: Array,
        out_at: Int,
    ) -> None:
        first, second, written = a.view(kernel.left), b.view(kernel.left), out.view(kernel.code)
        words = iter(constants[:, None].view(np.uint8))

        def take(kind: str) -> Any:
            return next(words)[: np.dtype(kind).itemsize].view(kind)[0]

        def operand(steps: Sequence[VectorStep]) -> tuple[int, int, Sequence[VectorStep], list[Any]]:
            zero, left = int(take("int32")), int(take("int32"))
            return zero, left, steps, [take(kind) for step in steps for kind in step.types]

        inputs = [operand(steps) for steps in (kernel.first, kernel.second)]
        scaling = [take(kind) for step in kernel.steps for kind in step.types]
        for i in range(passes * kernel.lanes):
            terms = []
            for code, (zero, left, steps, own) in zip((first[a_at + i], second[b_at + i]), inputs, strict=True):
                terms.append(int(through(steps, wrap_int32((int(code) - zero) << left), own)))
            total = wrap_int32(terms[0] + kernel.sign * terms[1])
            written[out_at + i] = clamp(wrap_int32(through(kernel.steps, total, scaling) + zero_point), low, high)

    return define


def _operands(at: Arguments) -> tuple[Any, ...]:
    from tflq.engine.microkernels.emission import SumOperands

    return SumOperands(
        first=at.address("a", at.number("a_at")),
        second=at.address("b", at.number("b_at")),
        constants=at.address("constants"),
        passes=at.number("passes"),
        zero_point=at.code("zero_point"),
        low=at.code("low"),
        high=at.code("high"),
        out=at.address("out", at.number("out_at")),
    )


@called.by_address(_operands, definition)
@compiled
def sum_into(
    at: Int,
    a: Array,
    a_at: Int,
    b: Array,
    b_at: Int,
    constants: Array,
    passes: Int,
    zero_point: Int,
    low: Int,
    high: Int,
    out: Array,
    out_at: Int,
) -> None:
    """Compute out[out_at + i] = clamp(scale(scale(a[a_at + i]) + sign * scale(b[b_at + i])) + zero point) by the kernel
    at an address.

    There are `passes` passes of the kernel's lanes. Arrays are contiguous; codes may be given as any type of their
    size.

    The caller guarantees: `at` is that of a kernel for these operands; all elements lie inside their arrays;
    `constants` are the kernel's.
    """
    called.definition_at(at)(a, a_at, b, b_at, constants, passes, zero_point, low, high, out, out_at)


@writes("out")
@in_pieces(1, frees_threads=True, a="r", b="r", out="r")
@compiled
def sums_into(
    a: Array, b: Array, kernel: Int, lanes: Int, constants: Array, zero_point: Int, low: Int, high: Int, out: Array
) -> None:
    """Fill `out` with scaled sums by the kernel at an address, which takes `lanes` at a time. The last register of
    elements overlaps the one before it; fewer elements than one go through arrays of a register's size.

    Prepare guarantees: `a`, `b` and `out` are flat and of the same size; `out` shares no memory with the others.
    """
    size = out.size
    if size >= lanes:
        sum_into(kernel, a, 0, b, 0, constants, size // lanes, zero_point, low, high, out, 0)
        if size % lanes > 0:
            last = size - lanes
            sum_into(kernel, a, last, b, last, constants, 1, zero_point, low, high, out, last)
    elif size > 0:
        first, second, codes = np.empty(lanes, a.dtype), np.empty(lanes, b.dtype), np.empty(lanes, out.dtype)
        for i in range(size):
            first[i], second[i] = a[i], b[i]
        sum_into(kernel, first, 0, second, 0, constants, 1, zero_point, low, high, codes, 0)
        for i in range(size):
            out[i] = codes[i]
