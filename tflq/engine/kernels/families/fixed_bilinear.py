"""RESIZE_BILINEAR of codes in fixed point, with its fields: positions in fractions of a pixel, one or two roundings.

Sources of fields: LiteRT 2.3 reference/resize_bilinear.h ResizeBilinearInteger (10 bits), OpenCV's resize (11 bits),
image units of chips (8 bits), tosa-converter-for-tflite 2026.2 (options that are not looked at).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families.nearest_positions import Position, asymmetric, corners, exact, half_pixel
from tflq.engine.kernels.families.resizing import resized_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.divisions import DIVISIONS, Ints
from tflq.engine.numerics.stages import type_range
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: The operators that have it.
OPERATORS = ("RESIZE_BILINEAR",)
_CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: The values of each field. `positions` are rounded to the fraction, or computed from a step that is.
FIELDS: Mapping[str, tuple[object, ...]] = {
    "bits": (4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16),
    "positions": ("to nearest", "cut off", "steps to nearest", "steps cut off"),
    "rounding": tuple(DIVISIONS),
    "sums": ("rounded once", "rows rounded first", "columns rounded first"),
    "modes": ("own", "half pixels always", "corners always", "neither"),
}


@dataclass(frozen=True, slots=True)
class FixedBilinear:
    """One point of the grammar. Fields are spelled as files of profiles spell them."""

    bits: int = 10
    positions: str = "to nearest"
    rounding: str = "half up"
    sums: str = "rounded once"
    modes: str = "own"


#: The reader of what a file states.
fixed_bilinear_of = reader(FixedBilinear, FIELDS, "a bilinear interpolation in fixed point")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Positions of rows and columns in 2**-bits pixels, inside the image."""

    rows: Ints
    columns: Ints
    dtype: np.dtype[Any]
    point: FixedBilinear


def bilinear_in_fixed_point(row: Kernel, point: FixedBilinear) -> Kernel:
    """Return the row of RESIZE_BILINEAR with positions of some bits."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x = node.input(0)
        require_same_type(node, x, node.outputs[0])
        node.check(x.type in _CODES, "has no codes", x)
        shape = resized_shape(node, smallest=1)
        node.check(min(x.shape) > 0, "is empty", x)
        align, half = bool(node.options["align_corners"]), bool(node.options["half_pixel_centers"])
        node.check(not (align and half), "has align_corners and half_pixel_centers")
        own = corners if align else half_pixel if half else asymmetric
        places = {"half pixels always": half_pixel, "corners always": corners, "neither": asymmetric}
        place = places.get(point.modes, own)
        rows, columns = (_positions(place, point, x.shape[d], shape[d]) for d in (1, 2))
        return Prepared((shape,), OpData(rows, columns, CARRIER[x.type], point), eval_bilinear)

    return replace(row, prepare=prepare, takes=None)


def _positions(place: Position, point: FixedBilinear, size: int, count: int) -> Ints:
    """Return the position of each output index, (count,), in 2**-bits pixels and inside the axis."""
    one, added = 1 << point.bits, 0 if point.positions.endswith("cut off") else 1
    whole, rest, divisor = exact(place, size, count)
    if point.positions.startswith("steps"):
        step, start, _ = place(size, count)
        step, start = ((2 * part * one + added * divisor) // (2 * divisor) for part in (step, start))
        found = start + step * np.arange(count, dtype=np.int64)
    else:
        found = whole * one + (2 * rest * one + added * divisor) // (2 * divisor)
    return np.asarray(np.clip(found, 0, (size - 1) << point.bits))


def eval_bilinear(data: OpData, x: Array, _size: Array) -> Array:
    """Weigh four pixels. Rounding: once or twice, by the point. Overflow: none, sums stay below 2**49."""
    point, image = data.point, x.astype(np.int64)
    if point.sums == "columns rounded first":
        codes = _along(_along(image, 1, data.rows, point, point.bits), 2, data.columns, point, point.bits)
    elif point.sums == "rows rounded first":
        codes = _along(_along(image, 2, data.columns, point, point.bits), 1, data.rows, point, point.bits)
    else:
        codes = _along(_along(image, 2, data.columns, point, 0), 1, data.rows, point, 2 * point.bits)
    return np.asarray(np.clip(codes, *type_range(data.dtype)).astype(data.dtype))


def _along(image: Ints, axis: int, at: Ints, point: FixedBilinear, bits: int) -> Ints:
    """Return the weighted sums of neighbours along an axis, divided by 2**bits."""
    low = at >> np.int64(point.bits)
    high = np.minimum(low + 1, image.shape[axis] - 1)
    shape = [1] * image.ndim
    shape[axis] = len(at)
    part = (at - (low << np.int64(point.bits))).reshape(shape)
    total = image.take(low, axis) * ((1 << point.bits) - part) + image.take(high, axis) * part
    return DIVISIONS[point.rounding](total, np.full((1,), bits, np.int64)) if bits else total
