"""Points of the grammar of requantizers: all of them, those beside one, and points that are the same function."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

from tflq.engine.numerics.divisions import DIVISIONS, ROUNDINGS
from tflq.engine.numerics.multipliers_of_scales import MULTIPLIERS
from tflq.engine.numerics.requantizer import (
    ACCUMULATORS,
    BY_RANGE,
    LEFT,
    MANTISSAS,
    NARROWED,
    PRODUCTS,
    RESULTS,
    SHIFTS,
    SHORTENED,
    ZERO_POINTS,
    Requantizer,
)


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
    shortened = [(31, SHORTENED[0]), *((bits, how) for bits in MANTISSAS[1:] for how in SHORTENED[:2])]
    shortened.append((15, SHORTENED[2]))
    for multiplier in computed:
        for bits, how in shortened if multiplier not in _FLOATS_ONLY else ():
            if bits in _OF_FEW_MULTIPLIERS and multiplier not in _FEW_MULTIPLIERS:
                continue
            for first in ("none", *DIVISIONS):
                for last in DIVISIONS:
                    for zero in ZERO_POINTS:
                        if zero == ZERO_POINTS[1] and last in _SHIFT_WITH_ZERO:
                            continue
                        found.append(Requantizer(multiplier, PRODUCTS[0], bits, how, str(first), last, zero))
        for product in _FLOAT_PRODUCTS if multiplier not in _FLOATS_ONLY else _FLOAT_PRODUCTS[1:2]:
            for last in ROUNDINGS:
                for zero in ZERO_POINTS:
                    found.append(Requantizer(multiplier, product, last=last, zero_point=zero))
    for product in PRODUCTS[-3:]:
        for last in ROUNDINGS:
            zeros = ZERO_POINTS[:1] if product == BY_RANGE else ZERO_POINTS  # a range has no other place for it
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
        found += [Requantizer("float64", mantissa=1, shortened=how, last=last) for how in SHORTENED[3:]]
        for bits in MANTISSAS[:-1]:
            for how in SHORTENED[:2] if bits < MANTISSAS[0] else SHORTENED[:1]:
                found.append(Requantizer("float64", mantissa=bits, shortened=how, last=last, shift=SHIFTS[1]))
                if bits <= _NARROW_UNITS:
                    found.append(Requantizer("float64", mantissa=bits, shortened=how, last=last, narrowed=NARROWED[1]))
    return found


#: The widest mantissa of units that take accumulators of 16 bits.
_NARROW_UNITS = 18


#: Roundings in fixed point that commute with the addition of a zero point.
_SHIFT_WITH_ZERO = ("towards minus infinity", "half up")


def variants(point: Requantizer) -> tuple[Requantizer, ...]:
    """Return the point with every width of accumulators, overflow of left shifts, and treatment of results."""
    lefts = LEFT if point.is_fixed else LEFT[:1]
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
    if not point.is_fixed or point.shift != SHIFTS[0] or point.narrowed != NARROWED[0]:
        return point
    if point.mantissa == 1:  # a shift: it is rounded once
        return replace(point, multiplier="float64", first="none")
    if point.multiplier in _OF_24_BITS and point.mantissa >= 24:
        point = replace(point, mantissa=31, shortened=SHORTENED[0])
    is_twice = point.first == point.last and point.first in ("towards minus infinity", "towards zero")
    return replace(point, first="none") if is_twice and point.zero_point == ZERO_POINTS[0] else point


def differing(points: tuple[Requantizer, ...]) -> tuple[str, ...]:
    """Return the fields in which some of the points differ."""
    return tuple(f.name for f in fields(Requantizer) if len({getattr(point, f.name) for point in points}) > 1)
