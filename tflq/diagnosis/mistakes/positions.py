"""RESIZE_NEAREST_NEIGHBOR by other rules: the input row and column that each output row and column copies.

A rule is the position of output index i on an axis of `size` inputs and `count` outputs, as an exact fraction, and its
rounding. Positions beyond an end are clamped to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Mistaken, Values
from tflq.surgery.part import Part

#: (output index, inputs, outputs) -> position.
_Position = Callable[[int, int, int], Fraction]

_HALF = Fraction(1, 2)


def _asymmetric(i: int, size: int, count: int) -> Fraction:
    return Fraction(i * size, count)


def _centres(i: int, size: int, count: int) -> Fraction:
    """Return the centre of the output pixel, from the input image's edge."""
    return (i + _HALF) * Fraction(size, count)


def _half_pixel(i: int, size: int, count: int) -> Fraction:
    """Return the centre of the output pixel, from the first input pixel's centre."""
    return _centres(i, size, count) - _HALF


def _corners(i: int, size: int, count: int) -> Fraction:
    return Fraction(i * (size - 1), count - 1) if count > 1 else Fraction(0)


#: Rules by name.
_POSITIONS: dict[str, _Position] = {
    "half_pixel_centers ignored": _asymmetric,
    "half_pixel_centers taken": _centres,
    "half_pixel_centers taken, from the first pixel's centre": _half_pixel,
    "align_corners taken": _corners,
}


def _half_down(x: Fraction) -> int:
    return math.ceil(x - _HALF)


def _half_up(x: Fraction) -> int:
    return math.floor(x + _HALF)


#: Roundings by name.
_ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "rounded down": math.floor,
    "rounded half up": _half_up,
    "rounded half down": _half_down,
    "rounded half to even": round,
    "rounded up": math.ceil,
}


def mistaken_positions(alone: Part) -> Iterator[Mistaken]:
    """Yield every rule of positions with every rounding, named by how it differs from the model's options."""
    operator = alone.op
    options = operator.options
    name = operator.builtin
    if name != "RESIZE_NEAREST_NEIGHBOR" or options is None or operator.inputs[0] not in alone.inputs:
        return
    align, half = bool(options.get("align_corners", False)), bool(options.get("half_pixel_centers", False))
    own = _corners if align else _centres if half else _asymmetric
    for rule, position in _POSITIONS.items():
        said = _rule_name(rule, align=align, half=half, is_own=position is own)
        for rounding, rounded in _ROUNDINGS.items():
            yield f"position of the nearest pixel: {said}{rounding}", _device(operator.inputs[0], position, rounded)


def _rule_name(rule: str, *, align: bool, half: bool, is_own: bool) -> str:
    """Return the rule's name, in terms of the options that it ignores or uses."""
    if is_own:
        return ""
    if rule == "half_pixel_centers ignored":
        ignored = [option for option, is_on in (("align_corners", align), ("half_pixel_centers", half)) if is_on]
        return f"{' and '.join(ignored)} ignored, "
    if align and not rule.startswith("align_corners"):
        return f"align_corners ignored, {rule}, "
    return f"{rule}, "


def _device(image: int, position: _Position, rounded: Callable[[Fraction], int]) -> Device:
    def device(alone: Part) -> Values:
        ((tensor, dumped),) = alone.got.items()
        x = alone.inputs[image]
        for axis in (1, 2):
            size, count = x.shape[axis], dumped.shape[axis]
            found = [min(max(rounded(position(i, size, count)), 0), size - 1) for i in range(count)]
            x = x.take(np.array(found, np.int64), axis)
        return {tensor: x}

    return device
