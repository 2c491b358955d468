"""A grammar of requantizers: how devices turn an integer accumulator into a code, as named fields.

A `Requantizer` is one point of the grammar. Its fields are spelled as files of profiles spell them. `FIELDS` lists the
values of each field; `NAMED` gives the points that are stages of runtimes (profiles/values.py) by their names. All
of it is plain NumPy on int64, float64 and float32: slower than the stages of numerics/stages.py, and able to
compute every point.

An accumulator is in LSB of a product of scales a * b (or of one scale a), and a code in LSB of the scale y.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tflq.engine.numerics.code_ranges import FIRST_IN_SHIFT, TO_CODES, range_of
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.divisions import OF_HARDWARE, ROUNDINGS, Ints
from tflq.engine.numerics.multiplier import quantize_multipliers
from tflq.engine.numerics.multipliers_of_scales import MULTIPLIERS, Reals, Scales
from tflq.engine.numerics.narrow_floats import in_bfloat16, in_float16
from tflq.engine.numerics.stated_fields import check_fields
from tflq.errors import OptionError
from tflq.typing import Array

#: The largest int32; accumulators beyond it saturate or wrap.
_MOST, _LEAST = np.int64(2**31 - 1), np.int64(-(2**31))
#: Scaled values are limited to this size, which no result depends on.
_FAR = 2.0**40
_WIDE = np.int64(1) << np.int64(62)


#: Products of accumulator and multiplier. The last three scale to reals first, then by the output's scale, or by the
#: ends of its range (`TO_CODES` of tflq/engine/numerics/code_ranges.py: the first code in the shift).
PRODUCTS = (
    "fixed point",
    "float64",
    "float32",
    "bfloat16",
    "float16",
    "float32 quotient",
    "float32 times reciprocal",
    "float32 by range",
)
BY_RANGE = PRODUCTS[-1]
#: Products whose operands and results are narrow floats, by name.
_NARROW: Mapping[str, Callable[[Array], Array]] = {"bfloat16": in_bfloat16, "float16": in_float16}
#: Bits of a fixed-point mantissa after its sign; a mantissa of 1 bit makes the multiplier a power of two.
MANTISSAS = (31, 24, 23, 18, 17, 16, 15, 12, 11, 8, 7, 1)
#: How mantissas are shortened from 31 bits. "kept below 1": one that would round up to 1 keeps its largest value.
SHORTENED = ("to nearest", "cut off", "to nearest, kept below 1", "rounded up", "to the nearest logarithm")
#: Exponents of fixed-point mantissas: each multiplier has its own, or all channels that of the largest.
SHIFTS = ("of each multiplier", "of the largest multiplier")
#: Accumulators may be shifted to the right first, so that the codes keep 8 more bits, and saturate in 16 bits.
NARROWED = ("not before the product", "to 16 bits before the product")
#: 2 less the square root of 2, times 2**30: mantissas from the root on are nearer to the next power of two.
_ABOVE_ROOT = np.int64(628983398)
#: Bits that codes keep below their own when accumulators are narrowed.
_KEPT_BITS = 8
#: Treatments of accumulators that are shifted to the left beyond 32 bits.
LEFT = ("wraps", "saturates", "exact")
#: Widths of accumulators with their bias.
ACCUMULATORS = (
    "32 bits, wraps",
    "32 bits, saturates",
    "24 bits, wraps",
    "24 bits, saturates",
    "20 bits, wraps",
    "20 bits, saturates",
    "18 bits, wraps",
    "18 bits, saturates",
    "16 bits, wraps",
    "16 bits, saturates",
    "64 bits",
)
#: Treatments of scaled values beyond the output's range.
RESULTS = (
    "clamped",
    "wraps 32 bits, then clamped",
    "INT32_MIN beyond 32 bits, then clamped",
    "clamped before and after the zero point",
    "cut to the type",
)
#: Places of the zero point.
ZERO_POINTS = ("after rounding", "before rounding")


@dataclass(frozen=True, slots=True)
class Requantizer:
    """One point of the grammar.

    `first` rounds a fixed-point product to its high word; if it is "none", `last` rounds once. Fields that a product in
    floating point does not use keep their defaults.
    """

    multiplier: str = "given"
    product: str = "fixed point"
    mantissa: int = 31
    shortened: str = "to nearest"
    first: str = "none"
    last: str = "half up"
    zero_point: str = "after rounding"
    left: str = "wraps"
    accumulator: str = "32 bits, wraps"
    result: str = "clamped"
    shift: str = "of each multiplier"
    narrowed: str = "not before the product"

    @property
    def is_fixed(self) -> bool:
        """True for a fixed-point product."""
        return self.product == "fixed point"

    @property
    def uses_scales(self) -> bool:
        """True if the output's scale is applied apart from the others."""
        return self.product in PRODUCTS[-3:]

    def factors(self, real: Reals, scales: Scales | None) -> tuple[Array, ...]:
        """Return the constants of the multiplication for real multipliers and their scales, if these are known."""
        with np.errstate(all="ignore"):
            if self.uses_scales:
                if scales is None:
                    return (real.astype(np.float32), np.ones(1, np.float32))
                return (scales.a if scales.b is None else scales.a * scales.b), scales.y
            chosen = real if scales is None or self.multiplier == "given" else MULTIPLIERS[self.multiplier](scales)
            if not self.is_fixed:
                return (chosen,)
            return _shorten(chosen, self.mantissa, self.shortened, is_shared=self.shift == SHIFTS[1])

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
        if self.result == "cut to the type":
            return np.asarray((scaled + zero - low) % (high - low + 1) + low)
        if self.result == "INT32_MIN beyond 32 bits, then clamped":
            scaled = np.where((scaled < _LEAST) | (scaled > _MOST), _LEAST, scaled)
        if self.result in RESULTS[1:3]:
            scaled = (scaled + zero).astype(np.int32).astype(np.int64)
            return np.asarray(np.clip(scaled, low, high))
        if self.result == "clamped before and after the zero point":
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
        if self.zero_point == "before rounding":
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
        if self.product == "float32 quotient":
            product = product / factors[1]
        elif self.product == "float32 times reciprocal":
            product = product * (np.float32(1) / factors[1])
        return np.asarray(product, np.float32)

    def _in_fixed_point(self, total: Ints, factors: tuple[Array, ...], zero: Ints) -> Ints:
        mantissa, shift = factors
        if self.narrowed == NARROWED[1]:
            ahead = np.maximum(-shift - _KEPT_BITS, 0)
            total = np.clip(OF_HARDWARE[self.last](total, np.minimum(ahead, 62)), -(2**15), 2**15 - 1)
            shift = shift + ahead
        left, right, bits = np.maximum(shift, 0), np.maximum(-shift, 0), np.full_like(shift, self.mantissa)
        if self.left == "exact":
            product, bits = total * mantissa, bits - left
            up, bits = np.clip(-bits, 0, 62), np.maximum(bits, 0)
            product = np.where(np.abs(product) > _WIDE >> up, np.sign(product) * _WIDE, product << up)
        else:
            shifted = _shift_left(total, left) if self.left == "saturates" else _wrap(total << (left & 31))
            product = shifted * mantissa
        last = OF_HARDWARE[self.last]
        if self.first != "none":
            high = OF_HARDWARE[self.first](product, bits)
            if self.zero_point == "before rounding":
                return np.asarray(last(high + (zero << right), right) - zero)
            return last(high, right)
        down = np.minimum(bits + right, np.int64(62))
        if self.zero_point == "before rounding":
            return np.asarray(last(product + (zero << down), down) - zero)
        return last(product, down)


def _whole(rounded: Array) -> Ints:
    """Return whole floats as integers."""
    return np.clip(np.nan_to_num(rounded.astype(np.float64)), -_FAR, _FAR).astype(np.int64)


def limit(total: Ints, accumulator: str) -> Ints:
    """Return accumulators in their width."""
    if accumulator == "64 bits":
        return total
    width, how = accumulator.split(" bits, ")
    half = np.int64(1) << np.int64(int(width) - 1)
    if how == "wraps":
        return np.asarray(((total + half) & (2 * half - 1)) - half)
    return np.asarray(np.clip(total, -half, half - 1))


def _wrap(total: Ints) -> Ints:
    return np.asarray(total.astype(np.int32).astype(np.int64))


def _shift_left(total: Ints, shift: Ints) -> Ints:
    """Return total * 2**shift, saturated in 32 bits."""
    near = np.minimum(shift, 31)
    leaves = (shift > 0) & (np.abs(total) > _MOST >> near)
    return np.where(leaves, np.sign(total) * _MOST, total << near)


def _shorten(real: Reals, bits: int, how: str, *, is_shared: bool) -> tuple[Ints, Ints]:
    mantissas, shifts = (values.astype(np.int64) for values in quantize_multipliers(real))
    dropped = np.full_like(shifts, 31 - bits)
    if is_shared:
        dropped, shifts = np.minimum(dropped + shifts.max() - shifts, 62), np.full_like(shifts, shifts.max())
    one = np.int64(1) << dropped
    above = {
        "cut off": np.zeros_like(one),
        "rounded up": one - 1,
        "to the nearest logarithm": (one * _ABOVE_ROOT) >> 30,
    }
    short = (mantissas + above.get(how, one >> 1)) >> dropped
    return (np.minimum(short, (np.int64(1) << bits) - 1) if how.endswith("below 1") else short), shifts


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
    "double-rounding": Requantizer(first="half up", last="half away from zero", result=RESULTS[1]),
    "half-up-twice": Requantizer(first="half up", result=RESULTS[1]),
    "single-rounding": Requantizer(left="exact", result=RESULTS[1]),
    "wide-rounding": Requantizer(
        mantissa=15, shortened=SHORTENED[2], left="exact", accumulator="64 bits", result=RESULTS[1]
    ),
    "float64": Requantizer(product="float64", last="half away from zero", result=RESULTS[2]),
    "float64-wide": Requantizer(
        product="float64", last="half away from zero", accumulator="64 bits", result=RESULTS[2]
    ),
    "float32-even": Requantizer(product="float32", last="half to even"),
    "exact-half-up": Requantizer("float64 rounded to float32", mantissa=24, left="exact"),
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
