"""Constants of codes, in types of their own; codes from real values.

Constants of quantized codes, in types that distinguish them from other integers.

Compiled loops take plain integers: a `ZeroPoint` or a `Shift` is passed on as `int(...)`, a clamp as `*clamp`.

Real values as codes, as QUANTIZE of LiteRT computes them.

Codes by the ends of a range: devices that know the reals of the lowest and the highest code, not scale and zero.

All in float32, for codes from `first` to `first + steps`:

    low = scale * (first - zero point)    high = scale * (first + steps - zero point)
    up = steps / (high - low)             step = (high - low) / steps

Source: OpenVINO 2026.4.1, TFLQuantizeReplacer (the ends), FakeQuantizeDecomposition of snippets (codes and reals),
NetworkHelper::decomposeFakeQuantize of the low precision transformations (the range's own zero point), and
DnnlPostOpsComposer of the CPU plugin (the shift that holds the first code).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.estimates import MultiplyAdd, fuse, round_apart
from tflq.engine.numerics.rounding import floats_to_int32, nearest_half_away
from tflq.typing import Array


class ZeroPoint(int):
    """The code, or the sum of codes, that represents the real number 0."""

    __slots__ = ()


class ZeroPoints(NamedTuple):
    """A zero point for every channel, or one for all."""

    codes: NDArray[np.int64]


class Shift(int):
    """The number of bits by which codes are shifted before any other step."""

    __slots__ = ()


class Clamp(NamedTuple):
    """The limits of codes, both included, LSB of the tensor."""

    low: int
    high: int


class NumberClamp(NamedTuple):
    """The limits of numbers that are not codes, both included, in their own type."""

    low: Any
    high: Any


def affine_codes(real: Array, scale: Any, zero_point: Any, limits: Clamp) -> NDArray[np.int32]:
    """Return the codes of real values; `scale` and `zero_point` are numbers, or arrays that broadcast.

    Rounding: to float32, float32 quotient, then half away from zero. Overflow: as x86 converts to int32, then wrap.

    Source: LiteRT 2.3 reference/quantize.h AffineQuantize; cppmath.h TfLiteRound.
    """
    with np.errstate(all="ignore"):
        quotients = np.divide(np.asarray(real, np.float32), np.asarray(scale, np.float32), dtype=np.float32)
        whole = floats_to_int32(nearest_half_away(quotients)).astype(np.int64)
        moved = (whole + np.asarray(zero_point, np.int64)).astype(np.int32)
    return np.asarray(np.clip(moved, *limits), np.int32)


F = np.float32


@dataclass(frozen=True, slots=True)
class CodeRange:
    """The ends of a tensor's range, its lowest code, and the number of steps from that to the highest."""

    low: np.float32
    high: np.float32
    first: int
    steps: int

    @property
    def up(self) -> np.float32:
        """The factor from reals to steps."""
        return F(F(self.steps) / (self.high - self.low))

    @property
    def step(self) -> np.float32:
        """The factor from steps to reals."""
        return F((self.high - self.low) / F(self.steps))

    @property
    def zero(self) -> np.float32:
        """The step of real 0, which need not be whole."""
        return F(-F(F(self.steps) * self.low) / (self.high - self.low))

    def counted(self, codes: Array) -> Array:
        """Return codes as steps above the lowest, float32: exact."""
        return np.asarray(codes.astype(np.int64) - self.first, F)

    def make_again(self, zero: np.float32, step: np.float32) -> CodeRange:
        """Return the range of these codes whose ends a zero and a step give, each rounded."""
        low, high = (F((F(end) - zero) * step) for end in (0, self.steps))
        return CodeRange(low, high, self.first, self.steps)

    def in_steps_of(self, other: CodeRange) -> CodeRange:
        """Return the range with its ends as steps of another range, counted from that range's lowest code."""
        low, high = (F(F(end / other.step) + other.zero) for end in (self.low, self.high))
        return CodeRange(low, high, self.first, self.steps)


def range_of(scale: Any, zero_point: Any, limits: Clamp) -> CodeRange:
    """Return the range of a tensor whose codes lie within `limits`, or of several, for arrays that broadcast."""
    scale, first, last = F(scale), int(limits[0]), int(limits[1])
    low, high = (F(scale * F(end - zero_point)) for end in (first, last))
    return CodeRange(low, high, first, last - first)


@dataclass(frozen=True, slots=True)
class ToCodes:
    """The conversion of reals to codes of a range: round(x * up + shift) + first, x clamped to the ends.

    The shift is -(low * up), or with `of_ends` steps * -low / (high - low). With `is_folded` it holds the first code,
    and codes are clamped afterwards.
    """

    multiply_add: MultiplyAdd
    of_ends: bool = False
    is_folded: bool = False

    def codes(self, reals: Array, of: CodeRange, rounding: Callable[[Array], Array]) -> Array:
        """Return whole numbers, float32; with `is_folded` they may lie beyond the type. NaN stays NaN."""
        reals = np.asarray(reals, F)
        shift = F(F(-of.low * F(of.steps)) / (of.high - of.low)) if self.of_ends else F(-F(of.low * of.up))
        if self.is_folded:
            return np.asarray(rounding(self.multiply_add(reals, of.up, F(shift + F(of.first)))))
        clamped = np.minimum(np.maximum(reals, of.low), of.high)
        return np.asarray(rounding(self.multiply_add(clamped, of.up, shift)) + F(of.first))


FIRST_IN_SHIFT = "by range, first code in the shift"
#: Conversions to codes by name.
TO_CODES: Mapping[str, ToCodes] = {
    "by range": ToCodes(round_apart),
    "by range, fused": ToCodes(fuse),
    "by range, shift of the ends, fused": ToCodes(fuse, of_ends=True),
    FIRST_IN_SHIFT: ToCodes(fuse, of_ends=True, is_folded=True),
}


def _from_ends(multiply_add: MultiplyAdd, *, is_made_again: bool = False) -> Callable[[Array, CodeRange], Array]:
    def reals(codes: Array, of: CodeRange) -> Array:
        ends = of.make_again(of.zero, of.step) if is_made_again else of
        return multiply_add(of.counted(codes), ends.step, ends.low)

    return reals


#: Conversions of codes to reals by name.
TO_REALS: Mapping[str, Callable[[Array, CodeRange], Array]] = {
    "by range": _from_ends(round_apart),
    "by range, fused": _from_ends(fuse),
    "by the range's step and zero": lambda codes, of: (of.counted(codes) - of.zero) * of.step,
    "by a range made of step and zero, fused": _from_ends(fuse, is_made_again=True),
}
