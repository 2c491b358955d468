"""RESIZE_NEAREST_NEIGHBOR by rules: the input row and column that each output row and column copies, with its fields.

A rule is the position of output index i on an axis of `size` inputs and `count` outputs, as an exact fraction, and its
rounding. Positions beyond an end are clamped to it. Each of the operator's three modes has a rule.
Source of fields: tosa-converter-for-tflite 2026.2.0 (half up without options, where TFLite rounds down).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.families.resizing import resized_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stated_fields import reader
from tflq.typing import Array

#: (inputs, outputs) -> step, start and divisor: output index i lies at (i * step + start) / divisor.
Position = Callable[[int, int], tuple[int, int, int]]
#: (numerators from 0 to the divisor, divisor) -> 0 or 1; whole numbers are added afterwards, whose parity decides ties.
Rounding = Callable[[Array, int, Array], Array]


def asymmetric(size: int, count: int) -> tuple[int, int, int]:
    """Return i times the inputs for each output."""
    return size, 0, count


def centres(size: int, count: int) -> tuple[int, int, int]:
    """Return the centre of the output pixel, from the input image's edge."""
    return 2 * size, size, 2 * count


def half_pixel(size: int, count: int) -> tuple[int, int, int]:
    """Return the centre of the output pixel, from the first input pixel's centre."""
    return 2 * size, size - count, 2 * count


def corners(size: int, count: int) -> tuple[int, int, int]:
    """Return the position that brings the first and the last pixels onto each other."""
    return (size - 1, 0, count - 1) if count > 1 else (0, 0, 1)


def exact(place: Position, size: int, count: int) -> tuple[Array, Array, int]:
    """Return the position of each output index, (count,): whole pixels, and the numerators and divisor of the rest."""
    step, start, divisor = place(size, count)
    whole, rest = np.divmod(np.arange(count, dtype=np.int64) * step + start, divisor)
    return whole, rest, divisor


#: Roundings by name, of a rest of a pixel behind whole ones.
ROUNDED: Mapping[str, Rounding] = {
    "rounded down": lambda rest, divisor, whole: np.zeros_like(whole),
    "rounded half up": lambda rest, divisor, whole: 2 * rest >= divisor,
    "rounded half down": lambda rest, divisor, whole: 2 * rest > divisor,
    "rounded half to even": lambda rest, divisor, whole: 2 * rest + whole % 2 > divisor,
    "rounded up": lambda rest, divisor, whole: rest > 0,
}
#: Positions with half_pixel_centers by name.
HALF_PIXEL: Mapping[str, Position] = {
    "from the edge": centres,
    "from the first pixel's centre": half_pixel,
    "ignored": asymmetric,
}
#: The operators that have it.
OPERATORS = ("RESIZE_NEAREST_NEIGHBOR",)
_HALF_PIXELS = tuple(f"{place}, {rounding}" for place in HALF_PIXEL for rounding in ROUNDED)
#: The values of each field; a place before the rounding holds in every mode.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "plain": (*ROUNDED, *_HALF_PIXELS[: 2 * len(ROUNDED)]),
    "align_corners": (*ROUNDED, *_HALF_PIXELS),
    "half_pixel_centers": _HALF_PIXELS,
}


@dataclass(frozen=True, slots=True)
class Nearest:
    """One point of the grammar: the rule of each mode. Fields are spelled as files of profiles spell them."""

    plain: str = "rounded down"
    align_corners: str = "rounded half up"
    half_pixel_centers: str = "from the edge, rounded down"


#: The reader of what a file states.
nearest_of = reader(Nearest, FIELDS, "a nearest position")


def positions(place: Position, rounded: Rounding, size: int, count: int) -> Array:
    """Return the input index of each output index, (count,), clamped to the axis."""
    whole, rest, divisor = exact(place, size, count)
    return np.asarray(np.clip(whole + rounded(rest, divisor, whole), 0, size - 1))


def nearest_by_rule(row: Kernel, point: Nearest) -> Kernel:
    """Return the row of RESIZE_NEAREST_NEIGHBOR with other positions."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x = node.input(0)
        require_same_type(node, x, node.outputs[0])
        shape = resized_shape(node, smallest=0)
        node.check(min(x.shape) > 0, "is empty", x)
        align, half = bool(node.options["align_corners"]), bool(node.options["half_pixel_centers"])
        node.check(not (align and half), "has align_corners and half_pixel_centers")
        rule = point.align_corners if align else point.half_pixel_centers if half else point.plain
        name, _, rounding = rule.rpartition(", ")
        place: Position = HALF_PIXEL[name] if name else corners if align else asymmetric
        rows, columns = (positions(place, ROUNDED[rounding], x.shape[d], shape[d]) for d in (1, 2))
        return Prepared((shape,), (rows, columns), eval_nearest)

    return replace(row, prepare=prepare, takes=None)


def eval_nearest(chosen: tuple[Array, Array], x: Array, size: Array) -> Array:
    """Copy the chosen rows and columns. Source: LiteRT 2.3, reference_ops::ResizeNearestNeighbor."""
    rows, columns = chosen
    return x.take(rows, 1).take(columns, 2)
