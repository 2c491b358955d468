"""A grammar of requantizers, its points, and a point as an output stage.

Fields of points of a grammar, as files of profiles state them.

A grammar of requantizers: how devices turn an integer accumulator into a code, as named fields.

A `Requantizer` is one point of the grammar. Its fields are spelled as files of profiles spell them. `FIELDS` lists the
values of each field; `NAMED` gives the points that are stages of runtimes (profiles/building.py) by their names. All
of it is plain NumPy on int64, float64 and float32: slower than the stages of numerics/stage_roundings.py, and able to
compute every point.

An accumulator is in LSB of a product of scales a * b (or of one scale a), and a code in LSB of the scale y.

Points of the grammar of requantizers: all of them, those beside one, and points that are the same function.

A point of the grammar of requantizers as an output stage that kernels can use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from tflq.engine.numerics.codes import FIRST_IN_SHIFT, TO_CODES, Clamp, range_of
from tflq.engine.numerics.estimates import in_bfloat16, in_float16
from tflq.engine.numerics.multiplier import MULTIPLIERS, OperatorScales, RealScales, quantize_multipliers
from tflq.engine.numerics.rounding import DIVISIONS, OF_HARDWARE, ROUNDINGS, Ints
from tflq.engine.numerics.stages import Ints32, OutputStage, Reals, as_reals, type_range
from tflq.errors import OptionError, UnknownNameError
from tflq.typing import Array

P = TypeVar("P")


def check_fields(stated: Mapping[str, Any], fields: Mapping[str, Sequence[Any]], owner: str) -> None:
    """Refuse fields and values that `fields`, the values of each field, does not have; True is no 1.

    Raises:
        UnknownNameError: A field or a value does not exist; the message names `owner`, such as "an average".
    """
    for field, value in stated.items():
        if field not in fields:
            raise UnknownNameError(f"field of {owner}", str(field), tuple(fields))
        if not any(type(known) is type(value) and known == value for known in fields[field]):
            raise UnknownNameError(f"value of {field}", str(value)[:80], tuple(map(str, fields[field])))


def reader(
    point: Callable[..., P], fields: Mapping[str, Sequence[object]], what: str
) -> Callable[[Mapping[str, Any]], P]:
    """Return the function that reads a point from what a file states of it; the other fields have their defaults.

    It raises UnknownNameError if a field or a value does not exist.
    """

    def read(stated: Mapping[str, Any]) -> P:
        check_fields(stated, fields, what)
        return point(**stated)

    return read


#: The largest int32; accumulators beyond it saturate or wrap.
_MOST, _LEAST = np.int64(2**31 - 1), np.int64(-(2**31))
#: Scaled values are limited to this size, which no result depends on.
_FAR = 2.0**40
_WIDE = np.int64(1) << np.int64(62)


FIXED_POINT = "fixed point"
#: Products that scale to reals first, then by the output's scale, or by the ends of its range (`TO_CODES` of
#: tflq/engine/numerics/codes.py: the first code in the shift).
QUOTIENT, RECIPROCAL, BY_RANGE = _BY_SCALES = "float32 quotient", "float32 times reciprocal", "float32 by range"
#: Products of accumulator and multiplier.
PRODUCTS = (FIXED_POINT, "float64", "float32", "bfloat16", "float16", *_BY_SCALES)
#: Products whose operands and results are narrow floats, by name.
_NARROW: Mapping[str, Callable[[Array], Array]] = {"bfloat16": in_bfloat16, "float16": in_float16}
#: Bits of a fixed-point mantissa after its sign; a mantissa of 1 bit makes the multiplier a power of two.
MANTISSAS = (31, 24, 23, 18, 17, 16, 15, 12, 11, 8, 7, 1)
#: How mantissas are shortened from 31 bits. "kept below 1": one that would round up to 1 keeps its largest value.
TO_NEAREST, CUT_OFF, BELOW_ONE, ROUNDED_UP, LOGARITHM = SHORTENED = (
    "to nearest",
    "cut off",
    "to nearest, kept below 1",
    "rounded up",
    "to the nearest logarithm",
)
#: Exponents of fixed-point mantissas: each multiplier has its own, or all channels that of the largest.
OWN_SHIFT, SHARED_SHIFT = SHIFTS = "of each multiplier", "of the largest multiplier"
#: Accumulators may be shifted to the right first, so that the codes keep 8 more bits, and saturate in 16 bits.
NOT_NARROWED, TO_16_BITS = NARROWED = "not before the product", "to 16 bits before the product"
#: 2 less the square root of 2, times 2**30: mantissas from the root on are nearer to the next power of two.
_ABOVE_ROOT = np.int64(628983398)
#: Bits that codes keep below their own when accumulators are narrowed.
_KEPT_BITS = 8
#: Treatments of accumulators that are shifted to the left beyond 32 bits.
WRAPS, SATURATES, EXACT = LEFT = "wraps", "saturates", "exact"
#: Widths of accumulators with their bias.
_WIDE_ACCUMULATOR = "64 bits"
ACCUMULATORS = (
    *(f"{bits} bits, {end}" for bits in (32, 24, 20, 18, 16) for end in (WRAPS, SATURATES)),
    _WIDE_ACCUMULATOR,
)
#: Treatments of scaled values beyond the output's range.
CLAMPED, WRAPS_INT32, TO_INT32_MIN, CLAMPED_TWICE, CUT_TO_TYPE = RESULTS = (
    "clamped",
    "wraps 32 bits, then clamped",
    "INT32_MIN beyond 32 bits, then clamped",
    "clamped before and after the zero point",
    "cut to the type",
)
#: Places of the zero point.
AFTER_ROUNDING, BEFORE_ROUNDING = ZERO_POINTS = "after rounding", "before rounding"


@dataclass(frozen=True, slots=True)
class Requantizer:
    """One point of the grammar.

    `first` rounds a fixed-point product to its high word; if it is "none", `last` rounds once. Fields that a product in
    floating point does not use keep their defaults.
    """

    multiplier: str = "given"
    product: str = FIXED_POINT
    mantissa: int = 31
    shortened: str = TO_NEAREST
    first: str = "none"
    last: str = "half up"
    zero_point: str = AFTER_ROUNDING
    left: str = WRAPS
    accumulator: str = "32 bits, wraps"
    result: str = CLAMPED
    shift: str = OWN_SHIFT
    narrowed: str = NOT_NARROWED

    @property
    def is_fixed(self) -> bool:
        """True for a fixed-point product."""
        return self.product == FIXED_POINT

    @property
    def uses_scales(self) -> bool:
        """True if the output's scale is applied apart from the others."""
        return self.product in _BY_SCALES

    def factors(self, real: RealScales, scales: OperatorScales | None) -> tuple[Array, ...]:
        """Return the constants of the multiplication for real multipliers and their scales, if these are known."""
        with np.errstate(all="ignore"):
            if self.uses_scales:
                if scales is None:
                    return (real.astype(np.float32), np.ones(1, np.float32))
                return (scales.a if scales.b is None else scales.a * scales.b), scales.y
            chosen = real if scales is None or self.multiplier == "given" else MULTIPLIERS[self.multiplier](scales)
            if not self.is_fixed:
                return (chosen,)
            return _shorten(chosen, self.mantissa, self.shortened, is_shared=self.shift == SHARED_SHIFT)

    def codes(
        self,
        total: Ints,
        factors: tuple[Array, ...],
        zero_point: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        limits: Clamp | None = None,
    ) -> Ints:
        """Return the codes of accumulators that hold their bias; arrays broadcast.

        `limits` are those of the output's type, if an activation narrows `low` and `high`.
        """
        limits = limits or Clamp(int(np.min(low)), int(np.max(high)))
        zero, low, high = (np.asarray(value, np.int64) for value in (zero_point, low, high))
        with np.errstate(all="ignore"):
            scaled = self._scale(limit(total, self.accumulator), factors, zero, limits)
        if self.result == CUT_TO_TYPE:
            return np.asarray((scaled + zero - low) % (high - low + 1) + low)
        if self.result == TO_INT32_MIN:
            scaled = np.where((scaled < _LEAST) | (scaled > _MOST), _LEAST, scaled)
        if self.result in (WRAPS_INT32, TO_INT32_MIN):
            scaled = (scaled + zero).astype(np.int32).astype(np.int64)
            return np.asarray(np.clip(scaled, low, high))
        if self.result == CLAMPED_TWICE:
            scaled = np.clip(scaled, low, high)
        return np.asarray(np.clip(scaled + zero, low, high))

    def _scale(self, total: Ints, factors: tuple[Array, ...], zero: Ints, limits: Clamp) -> Ints:
        """Return scaled accumulators without the zero point."""
        if self.is_fixed:
            return self._in_fixed_point(total, factors, zero)
        if self.product == BY_RANGE:
            reals = np.asarray(total.astype(np.float32) * factors[0].astype(np.float32), np.float32)
            of = range_of(factors[1], zero, limits)
            return _whole(TO_CODES[FIRST_IN_SHIFT].codes(reals, of, ROUNDINGS[self.last])) - zero
        product = self._in_floats(total, factors)
        if self.zero_point == BEFORE_ROUNDING:
            return _whole(ROUNDINGS[self.last](product + zero.astype(product.dtype))) - zero
        return _whole(ROUNDINGS[self.last](product))

    def _in_floats(self, total: Ints, factors: tuple[Array, ...]) -> Array:
        if self.product == "float64":
            return np.asarray(total.astype(np.float64) * factors[0])
        floats: Array = total.astype(np.float32)
        if self.product in _NARROW:
            narrow = _NARROW[self.product]
            return narrow(narrow(floats) * narrow(factors[0].astype(np.float32)))
        product: Array = floats * factors[0].astype(np.float32)
        if self.product == QUOTIENT:
            product = product / factors[1]
        elif self.product == RECIPROCAL:
            product = product * (np.float32(1) / factors[1])
        return np.asarray(product, np.float32)

    def _in_fixed_point(self, total: Ints, factors: tuple[Array, ...], zero: Ints) -> Ints:
        mantissa, shift = factors
        if self.narrowed == TO_16_BITS:
            ahead = np.maximum(-shift - _KEPT_BITS, 0)
            total = np.clip(OF_HARDWARE[self.last](total, np.minimum(ahead, 62)), -(2**15), 2**15 - 1)
            shift = shift + ahead
        left, right, bits = np.maximum(shift, 0), np.maximum(-shift, 0), np.full_like(shift, self.mantissa)
        if self.left == EXACT:
            product, bits = total * mantissa, bits - left
            up, bits = np.clip(-bits, 0, 62), np.maximum(bits, 0)
            product = np.where(np.abs(product) > _WIDE >> up, np.sign(product) * _WIDE, product << up)
        else:
            shifted = _shift_left(total, left) if self.left == SATURATES else _wrap(total << (left & 31))
            product = shifted * mantissa
        last = OF_HARDWARE[self.last]
        if self.first != "none":
            high = OF_HARDWARE[self.first](product, bits)
            if self.zero_point == BEFORE_ROUNDING:
                return np.asarray(last(high + (zero << right), right) - zero)
            return last(high, right)
        down = np.minimum(bits + right, np.int64(62))
        if self.zero_point == BEFORE_ROUNDING:
            return np.asarray(last(product + (zero << down), down) - zero)
        return last(product, down)


def _whole(rounded: Array) -> Ints:
    """Return whole floats as integers."""
    return np.clip(np.nan_to_num(rounded.astype(np.float64)), -_FAR, _FAR).astype(np.int64)


def limit(total: Ints, accumulator: str) -> Ints:
    """Return accumulators in their width."""
    if accumulator == _WIDE_ACCUMULATOR:
        return total
    width, how = accumulator.split(" bits, ")
    half = np.int64(1) << np.int64(int(width) - 1)
    if how == WRAPS:
        return np.asarray(((total + half) & (2 * half - 1)) - half)
    return np.asarray(np.clip(total, -half, half - 1))


def _wrap(total: Ints) -> Ints:
    return np.asarray(total.astype(np.int32).astype(np.int64))


def _shift_left(total: Ints, shift: Ints) -> Ints:
    """Return total * 2**shift, saturated in 32 bits."""
    near = np.minimum(shift, 31)
    leaves = (shift > 0) & (np.abs(total) > _MOST >> near)
    return np.where(leaves, np.sign(total) * _MOST, total << near)


def _shorten(real: RealScales, bits: int, how: str, *, is_shared: bool) -> tuple[Ints, Ints]:
    mantissas, shifts = (values.astype(np.int64) for values in quantize_multipliers(real))
    dropped = np.full_like(shifts, 31 - bits)
    if is_shared:
        dropped, shifts = np.minimum(dropped + shifts.max() - shifts, 62), np.full_like(shifts, shifts.max())
    one = np.int64(1) << dropped
    above = {CUT_OFF: np.zeros_like(one), ROUNDED_UP: one - 1, LOGARITHM: (one * _ABOVE_ROOT) >> 30}
    short = (mantissas + above.get(how, one >> 1)) >> dropped
    return (np.minimum(short, (np.int64(1) << bits) - 1) if how == BELOW_ONE else short), shifts


#: The values of each field.
FIELDS: Mapping[str, tuple[object, ...]] = {
    "multiplier": tuple(MULTIPLIERS),
    "product": PRODUCTS,
    "mantissa": MANTISSAS,
    "shortened": SHORTENED,
    "first": ("none", *OF_HARDWARE),
    "last": tuple(OF_HARDWARE),
    "zero_point": ZERO_POINTS,
    "left": LEFT,
    "accumulator": ACCUMULATORS,
    "result": RESULTS,
    "shift": SHIFTS,
    "narrowed": NARROWED,
}
#: Points that are stages of runtimes, by the names of these.
NAMED: Mapping[str, Requantizer] = {
    "double-rounding": Requantizer(first="half up", last="half away from zero", result=WRAPS_INT32),
    "half-up-twice": Requantizer(first="half up", result=WRAPS_INT32),
    "single-rounding": Requantizer(left=EXACT, result=WRAPS_INT32),
    "wide-rounding": Requantizer(
        mantissa=15, shortened=BELOW_ONE, left=EXACT, accumulator=_WIDE_ACCUMULATOR, result=WRAPS_INT32
    ),
    "float64": Requantizer(product="float64", last="half away from zero", result=TO_INT32_MIN),
    "float64-wide": Requantizer(
        product="float64", last="half away from zero", accumulator=_WIDE_ACCUMULATOR, result=TO_INT32_MIN
    ),
    "float32-even": Requantizer(product="float32", last="half to even"),
    "exact-half-up": Requantizer("float64 rounded to float32", mantissa=24, left=EXACT),
}


def point_of(stated: Mapping[str, Any]) -> Requantizer:
    """Return the point with the fields in `stated`; the others have their defaults.

    Raises:
        UnknownNameError: A field or a value does not exist.
        OptionError: Two fields contradict each other.
    """
    check_fields(stated, FIELDS, "a requantizer")
    point = Requantizer(**stated)
    needless = [] if point.is_fixed else [f for f in _OF_FIXED if f in stated]
    if needless and any(getattr(point, f) != getattr(_DEFAULT, f) for f in needless):
        raise OptionError(f"{', '.join(needless)}: only a product in fixed point has these fields")
    return point


_DEFAULT = Requantizer()
#: Fields of products in fixed point only.
_OF_FIXED = ("mantissa", "shortened", "first", "left", "shift", "narrowed")


def stated(point: Requantizer) -> dict[str, Any]:
    """Return the fields that differ from their defaults; `point_of` reads them."""
    default = asdict(_DEFAULT)
    return {field: value for field, value in asdict(point).items() if value != default[field]}


def points() -> tuple[Requantizer, ...]:
    """Return every point on multiplication and rounding.

    Width of accumulators, overflow of left shifts and treatment of results keep their defaults: they show on other
    questions. `variants` combines one point with those.
    """
    return _points()


@cache
def _points() -> tuple[Requantizer, ...]:
    found = []
    computed = [name for name in MULTIPLIERS if name != "given"]
    shortened = [(31, TO_NEAREST), *((bits, how) for bits in MANTISSAS[1:] for how in (TO_NEAREST, CUT_OFF))]
    shortened.append((15, BELOW_ONE))
    for multiplier in computed:
        for bits, how in shortened if multiplier not in _FLOATS_ONLY else ():
            if bits in _OF_FEW_MULTIPLIERS and multiplier not in _FEW_MULTIPLIERS:
                continue
            for first in ("none", *DIVISIONS):
                for last in DIVISIONS:
                    for zero in ZERO_POINTS:
                        if zero == BEFORE_ROUNDING and last in _SHIFT_WITH_ZERO:
                            continue
                        found.append(Requantizer(multiplier, FIXED_POINT, bits, how, str(first), last, zero))
        for product in _FLOAT_PRODUCTS if multiplier not in _FLOATS_ONLY else ("float32",):
            for last in ROUNDINGS:
                for zero in ZERO_POINTS:
                    found.append(Requantizer(multiplier, product, last=last, zero_point=zero))
    for product in (QUOTIENT, RECIPROCAL, BY_RANGE):
        for last in ROUNDINGS:
            zeros = (AFTER_ROUNDING,) if product == BY_RANGE else ZERO_POINTS  # a range has no other place for it
            found += [Requantizer(product=product, last=last, zero_point=zero) for zero in zeros]
    found += _of_hardware()
    return tuple(dict.fromkeys(map(canonical, found)))


#: Products in floats; multipliers that only these have.
_FLOAT_PRODUCTS, _FLOATS_ONLY = ("float64", "float32", "bfloat16", "float16"), ("float64 rounded to float16",)
#: Widths of mantissas that are combined with few multipliers: their last bits do not show there.
_OF_FEW_MULTIPLIERS, _FEW_MULTIPLIERS = (18, 17, 12, 11, 1), ("float64", "float32")


def _of_hardware() -> list[Requantizer]:
    """Return points of integer units: powers of two, one shift for all channels, accumulators of 16 bits."""
    found = []
    for last in DIVISIONS:
        found += [Requantizer("float64", mantissa=1, shortened=how, last=last) for how in (ROUNDED_UP, LOGARITHM)]
        for bits in MANTISSAS[:-1]:
            for how in (TO_NEAREST, CUT_OFF) if bits < MANTISSAS[0] else (TO_NEAREST,):
                found.append(Requantizer("float64", mantissa=bits, shortened=how, last=last, shift=SHARED_SHIFT))
                if bits <= _NARROW_UNITS:
                    found.append(Requantizer("float64", mantissa=bits, shortened=how, last=last, narrowed=TO_16_BITS))
    return found


#: The widest mantissa of units that take accumulators of 16 bits.
_NARROW_UNITS = 18


#: Roundings in fixed point that commute with the addition of a zero point.
_SHIFT_WITH_ZERO = ("towards minus infinity", "half up")


def variants(point: Requantizer) -> tuple[Requantizer, ...]:
    """Return the point with every width of accumulators, overflow of left shifts, and treatment of results."""
    lefts = LEFT if point.is_fixed else (WRAPS,)
    return tuple(
        replace(point, left=left, accumulator=accumulator, result=result)
        for left in lefts
        for accumulator in ACCUMULATORS
        for result in RESULTS
    )


#: Multipliers that are float32 numbers.
_OF_24_BITS = (
    "float32",
    "float32, the product of scales last",
    "float32, times the output scale's reciprocal",
    "float64 rounded to float32",
)


def canonical(point: Requantizer) -> Requantizer:
    """Return the simplest point that is the same function, by two laws.

    A float32 number has 24 bits: a mantissa of 24 bits or more is exact. Two roundings towards minus infinity, or two
    towards zero, are one.
    """
    if not point.is_fixed or point.shift != OWN_SHIFT or point.narrowed != NOT_NARROWED:
        return point
    if point.mantissa == 1:  # a shift: it is rounded once
        return replace(point, multiplier="float64", first="none")
    if point.multiplier in _OF_24_BITS and point.mantissa >= 24:
        point = replace(point, mantissa=31, shortened=TO_NEAREST)
    is_twice = point.first == point.last and point.first in ("towards minus infinity", "towards zero")
    return replace(point, first="none") if is_twice and point.zero_point == AFTER_ROUNDING else point


def differing(points: tuple[Requantizer, ...]) -> tuple[str, ...]:
    """Return the fields in which some of the points differ."""
    return tuple(f.name for f in fields(Requantizer) if len({getattr(point, f.name) for point in points}) > 1)


#: Limits of results that no result reaches: they wrap instead.
_REQUANTIZER_STAGE_FAR = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class GrammarStage(OutputStage):
    """An OutputStage that computes as a point, with the constants of its multipliers, length 1 or C."""

    real: Reals
    point: Requantizer
    factors: tuple[Array, ...]

    @classmethod
    def of(cls, point: Requantizer, real: ArrayLike, scales: OperatorScales | None = None) -> GrammarStage:
        """Return the stage for real multipliers; `scales` are what they were computed from, if that is known."""
        values = as_reals(real)
        factors = tuple(map(np.atleast_1d, point.factors(values, scales)))
        return cls(values, point, factors)

    def _codes(self, total: Array, zero_point: int, low: int, high: int, dtype: DTypeLike = np.int8) -> Array:
        channels = total.shape[-1]
        factors = tuple(f[:channels] if len(f) >= channels else f[:1] for f in self.factors)
        return self.point.codes(total, factors, zero_point, low, high, type_range(dtype))

    def __call__(self, accumulator: Array) -> Ints32:
        """Scale accumulators; see OutputStage.__call__."""
        total = np.atleast_1d(accumulator).astype(np.int64)
        return (
            self._codes(total, 0, -_REQUANTIZER_STAGE_FAR, _REQUANTIZER_STAGE_FAR)
            .astype(np.int32)
            .reshape(accumulator.shape)
        )

    def narrow(self, accumulator: Array, out: Array, bias: Array, zero_point: int, low: int, high: int) -> None:
        """Add the bias, scale, add the zero point and clamp; see OutputStage.narrow."""
        channels = accumulator.shape[1]
        added = bias[:channels] if len(bias) >= channels else bias[:1]
        total = accumulator.astype(np.int64) + added.astype(np.int64)
        out[...] = self._codes(total, zero_point, low, high, out.dtype).astype(out.dtype)
