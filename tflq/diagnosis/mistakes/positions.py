"""RESIZE_NEAREST_NEIGHBOR by other rules: the input row and column that each output row and column copies.

A rule is the position of output index i on an axis of `size` inputs and `count` outputs, as an exact fraction, and its
rounding. Positions beyond an end are clamped to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from tflq.diagnosis.mistakes.device import Device, Mistaken, Values
from tflq.engine.api.part import Part
from tflq.engine.kernels.families.nearest_positions import (
    ROUNDED,
    Position,
    asymmetric,
    centres,
    corners,
    half_pixel,
    positions,
)

#: Rules by name.
_POSITIONS: dict[str, Position] = {
    "half_pixel_centers ignored": asymmetric,
    "half_pixel_centers taken": centres,
    "half_pixel_centers taken, from the first pixel's centre": half_pixel,
    "align_corners taken": corners,
}


def mistaken_positions(alone: Part) -> Iterator[Mistaken]:
    """Yield every rule of positions with every rounding, named by how it differs from the model's options."""
    operator = alone.op
    options = operator.options
    name = operator.builtin
    if name != "RESIZE_NEAREST_NEIGHBOR" or options is None or operator.inputs[0] not in alone.inputs:
        return
    align, half = bool(options.get("align_corners", False)), bool(options.get("half_pixel_centers", False))
    own = corners if align else centres if half else asymmetric
    for rule, position in _POSITIONS.items():
        said = _rule_name(rule, align=align, half=half, is_own=position is own)
        for rounding, rounded in ROUNDED.items():
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


def _device(image: int, position: Position, rounded: Callable[[Fraction], int]) -> Device:
    def device(alone: Part) -> Values:
        ((tensor, dumped),) = alone.got.items()
        x = alone.inputs[image]
        for axis in (1, 2):
            x = x.take(positions(position, rounded, x.shape[axis], dumped.shape[axis]), axis)
        return {tensor: x}

    return device
