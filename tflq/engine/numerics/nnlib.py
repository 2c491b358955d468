"""Hexagon NN library: the adjustment of a float range so that 0 falls on a code.

All arithmetic is float32, one rounding per operation unless a fused one is named.
Source: nnlib hexagon/include/quantize.h, quantize_adjust_range and flt_div_255.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np

Float = np.float32
#: Step size from range, one of the four ways to divide by 255.
Step = Callable[[Float], Float]

#: Smallest range: as first published (2018), and later.
FLOOR_2018 = np.float32(1e-4)
FLOOR_LATER = np.float32(1e-18)

#: 1/255 as float32, and its difference from 1/255.
_LARGE_PART = np.float32(float.fromhex("0x8.08081p-11"))
_SMALL_PART = np.float32(float.fromhex("-0xF.EFEFFp-36"))
#: A zero point closer than this to an integer is one.
_NEARLY_WHOLE = np.float32(2.0**-14)


class Branch(IntEnum):
    """The way in which the range was adjusted."""

    NOT_NEGATIVE = 0  # minimum >= 0: nothing
    WHOLE = 1  # the zero point is integral already: nothing
    MAX_RAISED = 2
    MIN_LOWERED = 3


class AdjustedRange(NamedTuple):
    """The range after the adjustment."""

    low: Float
    high: Float
    step: Float
    reciprocal_step: Float
    branch: Branch


def step_two_term(x: Float) -> Float:
    """Return x / 255 as two float32 products, added: the library on a host."""
    return Float(_LARGE_PART * x + _SMALL_PART * x)


def step_fused(x: Float) -> Float:
    """Return x / 255 as one float32 product and a fused multiply-add: the library on Hexagon.

    The fused sum is formed in float64, where the product of two float32 is exact, and rounded to odd there, so that the
    rounding to float32 is the only one.
    """
    return _round_to_odd_then_float32(float(_LARGE_PART) * float(x), float(Float(_SMALL_PART * x)))


def step_times_reciprocal(x: Float) -> Float:
    """Return x times the float32 nearest to 1/255."""
    return Float(x * Float(1.0 / 255.0))


def step_divided(x: Float) -> Float:
    """Return x / 255, correctly rounded."""
    return Float(x / Float(255))


def quantize_adjust_range(
    low: Float, high: Float, floor: Float = FLOOR_2018, step: Step = step_two_term
) -> AdjustedRange:
    """Widen the range [low, high] (float32) to hold 0, then at one end so that -low / step is an integer.

    The end that has to move less is moved, unless the zero point would become 0 or 255.
    """
    low, high = np.fmin(Float(0), Float(low)), np.fmax(Float(0), Float(high))
    with np.errstate(all="ignore"):
        width = np.fmax(floor, high - low)
        per_unit = Float(255) / width
        branch = Branch.NOT_NEGATIVE
        if low < 0:
            zero = -low * per_unit
            whole = np.floor(zero)
            part = zero - whole
            branch = Branch.WHOLE
            if _NEARLY_WHOLE < part < Float(1) - _NEARLY_WHOLE:
                if whole > 0 and (whole > 253 or (part - Float(1)) * low >= part * high):
                    branch = Branch.MAX_RAISED
                    width = Float(-255) * low / whole
                    high = low + width
                else:
                    branch = Branch.MIN_LOWERED
                    low = high * (whole + Float(1)) / (whole - Float(254))
                    width = high - low
                per_unit = Float(255) / width
        return AdjustedRange(low, high, step(Float(width)), per_unit, branch)


def _round_to_odd_then_float32(a: float, b: float) -> Float:
    """Return a + b rounded once, to float32."""
    total = a + b
    error = (a - (total - (total - a))) + (b - (total - a))  # exact (two-sum)
    if error and np.isfinite(total) and not np.float64(total).view(np.int64) & 1:
        total = float(np.nextafter(total, np.inf if error > 0 else -np.inf))
    return Float(total)
