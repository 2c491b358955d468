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
    PRODUCTS,
    RESULTS,
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
        for bits, how in shortened:
            for first in ("none", *DIVISIONS):
                for last in DIVISIONS:
                    for zero in ZERO_POINTS:
                        if zero == ZERO_POINTS[1] and last in _SHIFT_WITH_ZERO:
                            continue
                        found.append(Requantizer(multiplier, PRODUCTS[0], bits, how, str(first), last, zero))
        for product in ("float64", "float32", "bfloat16"):
            for last in ROUNDINGS:
                for zero in ZERO_POINTS:
                    found.append(Requantizer(multiplier, product, last=last, zero_point=zero))
    for product in PRODUCTS[-3:]:
        for last in ROUNDINGS:
            zeros = ZERO_POINTS[:1] if product == BY_RANGE else ZERO_POINTS  # a range has no other place for it
            found += [Requantizer(product=product, last=last, zero_point=zero) for zero in zeros]
    return tuple(dict.fromkeys(map(canonical, found)))


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
    if not point.is_fixed:
        return point
    if point.multiplier in _OF_24_BITS and point.mantissa >= 24:
        point = replace(point, mantissa=31, shortened=SHORTENED[0])
    is_twice = point.first == point.last and point.first in ("towards minus infinity", "towards zero")
    return replace(point, first="none") if is_twice and point.zero_point == ZERO_POINTS[0] else point


def differing(points: tuple[Requantizer, ...]) -> tuple[str, ...]:
    """Return the fields in which some of the points differ."""
    return tuple(f.name for f in fields(Requantizer) if len({getattr(point, f.name) for point in points}) > 1)
