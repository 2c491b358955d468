"""Learned forms of positions and windows.

RESIZE_NEAREST_NEIGHBOR by rules: the input row and column that each output row and column copies, with its fields.

A rule is the position of output index i on an axis of `size` inputs and `count` outputs, as an exact fraction, and its
rounding. Positions beyond an end are clamped to it. Each of the operator's three modes has a rule.
Source of fields: tosa-converter-for-tflite 2026.2.0 (half up without options, where TFLite rounds down).

RESIZE_BILINEAR of codes in fixed point, with its fields: positions in fractions of a pixel, one or two roundings.

Sources of fields: LiteRT 2.3 reference/resize_bilinear.h ResizeBilinearInteger (10 bits), OpenCV's resize (11 bits),
image units of chips (8 bits), tosa-converter-for-tflite 2026.2 (options that are not looked at).

A row with windows whose device takes other elements of the image, with its fields.

Along an axis, tap k of output i is element i * stride + start - before + k * dilation. Devices differ in the stride and
start, in the padding before the image, in what taps outside hold, and in the channels of groups. The image is rebuilt
so that a window without padding sees what the device sees; pools that leave taps out get another window instead.

Sources of fields: OpenCV 5.0 dnn (padding of the undilated kernel), Sophgo TPU-MLIR 1.30 (taps of average pools that
hold the zero point), PyTorch's symmetric padding, accelerators without zero points (padding of code 0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.checks import require_same_type
from tflq.engine.kernels.families import means, pooling
from tflq.engine.kernels.families.learned_form import form
from tflq.engine.kernels.families.movement import resized_shape
from tflq.engine.kernels.geometry.windows import Padding, Window, window
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, filling
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.requantizer import reader
from tflq.engine.numerics.rounding import DIVISIONS, Ints
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER, TensorType
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
NEAREST_POSITIONS_OPERATORS = ("RESIZE_NEAREST_NEIGHBOR",)
_HALF_PIXELS = tuple(f"{place}, {rounding}" for place in HALF_PIXEL for rounding in ROUNDED)
#: The values of each field; a place before the rounding holds in every mode.
NEAREST_POSITIONS_FIELDS: Mapping[str, tuple[str, ...]] = {
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


def positions(place: Position, rounded: Rounding, size: int, count: int) -> Array:
    """Return the input index of each output index, (count,), clamped to the axis."""
    whole, rest, divisor = exact(place, size, count)
    return np.asarray(np.clip(whole + rounded(rest, divisor, whole), 0, size - 1))


@form(reader(Nearest, NEAREST_POSITIONS_FIELDS, "a nearest position"), NEAREST_POSITIONS_OPERATORS)
def nearest_by_rule(node: Node, arithmetic: Arithmetic, row: Kernel, point: Nearest) -> Prepared:
    """Return the row of RESIZE_NEAREST_NEIGHBOR with other positions."""
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


@filling(lambda chosen, x, _: ((x.shape[0], chosen[0].size, chosen[1].size, x.shape[3]), x.dtype))
def eval_nearest(chosen: tuple[Array, Array], out: Array, x: Array, size: Array) -> Call:
    """Copy the chosen rows and columns. Source: LiteRT 2.3, reference_ops::ResizeNearestNeighbor."""
    rows, columns = chosen
    return lambda: np.take(x.take(columns, 2), rows, 1, out, "clip")


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


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Positions of rows and columns in 2**-bits pixels, inside the image."""

    rows: Ints
    columns: Ints
    dtype: np.dtype[Any]
    point: FixedBilinear


@form(reader(FixedBilinear, FIELDS, "a bilinear interpolation in fixed point"), OPERATORS)
def bilinear_in_fixed_point(node: Node, arithmetic: Arithmetic, row: Kernel, point: FixedBilinear) -> Prepared:
    """Return the row of RESIZE_BILINEAR with positions of some bits."""
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


POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")
#: The operators that have it.
WINDOW_RULES_OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", *POOLS)
LEFT_OUT = "left out"
#: The values of each field.
WINDOW_RULES_FIELDS: Mapping[str, tuple[str, ...]] = {
    "padding": ("more at the end", "more at the start", "of the undilated kernel", "half the kernel", "all at the end"),
    "outside": (LEFT_OUT, "the zero point", "code 0"),
    "strides": ("own", "the height's", "the width's", "swapped", "from the last element of each step"),
    "dilation": ("own", "ignored"),
    "groups": ("own", "the first group's channels"),
}


@dataclass(frozen=True, slots=True)
class WindowRule:
    """One point of the grammar of windows. Fields are spelled as files of profiles spell them."""

    padding: str = "more at the end"
    outside: str = LEFT_OUT
    strides: str = "own"
    dilation: str = "own"
    groups: str = "own"

    def moved(self, at: Window) -> Window:
        """Return the window that the device uses in place of the right one."""
        changed = {"the height's": (at.stride_h,) * 2, "the width's": (at.stride_w,) * 2}
        strides = changed.get(self.strides, (at.stride_h, at.stride_w))
        strides = strides[::-1] if self.strides == "swapped" else strides
        late = self.strides == WINDOW_RULES_FIELDS["strides"][-1]
        dilations = (1, 1) if self.dilation == "ignored" else (at.dilation_h, at.dilation_w)
        return at._replace(
            stride_h=strides[0],
            stride_w=strides[1],
            dilation_h=dilations[0],
            dilation_w=dilations[1],
            pad_top=self._before(at.height, at.kernel_h, at.stride_h, at.dilation_h, at.out_h)
            - late * (at.stride_h - 1),
            pad_left=self._before(at.width, at.kernel_w, at.stride_w, at.dilation_w, at.out_w)
            - late * (at.stride_w - 1),
        )

    def _before(self, size: int, kernel: int, stride: int, dilation: int, out: int) -> int:
        """Return the padding before an image."""
        spread = 1 if self.padding == "of the undilated kernel" else dilation
        reach = (kernel - 1) * spread + 1
        total = max(0, (out - 1) * stride + reach - size)
        if self.padding == "half the kernel":
            return reach // 2
        return {"more at the start": total - total // 2, "all at the end": 0}.get(self.padding, total // 2)


@dataclass(frozen=True, slots=True, eq=False)
class WindowRulesData:
    """Constants: the row's own, the rows, columns and channels that it is given, and the code outside the image."""

    inner: Prepared
    rows: Array
    columns: Array
    channels: Array
    fill: int


@form(reader(WindowRule, WINDOW_RULES_FIELDS, "a rule of windows"), WINDOW_RULES_OPERATORS)
def windows_by_rule(node: Node, arithmetic: Arithmetic, row: Kernel, point: WindowRule) -> Prepared:
    """Return the row that takes the elements that the rule names."""
    x = node.input(0)
    node.check(len(x.shape) == 4 and x.is_quantized and x.value is None, "has no image of codes", x)
    is_pool = node.op in POOLS
    kernel = [node.options["filter_height"], node.options["filter_width"]] if is_pool else node.input(1).shape[1:3]
    right = window(node, x.shape, (int(kernel[0]), int(kernel[1])))
    at = point.moved(right) if int(node.options["padding"]) == Padding.SAME else _without(point).moved(right)
    if is_pool and point.outside == LEFT_OUT:
        return _pooled(row.prepare(node, arithmetic), at, node)
    rows = _places(at.out_h, at.stride_h, at.kernel_h, at.dilation_h, at.pad_top)
    columns = _places(at.out_w, at.stride_w, at.kernel_w, at.dilation_w, at.pad_left)
    changed = {"padding": int(Padding.VALID), "stride_h": at.stride_h, "stride_w": at.stride_w}
    if not is_pool:
        changed |= {"dilation_h_factor": at.dilation_h, "dilation_w_factor": at.dilation_w}
    shape = (x.shape[0], len(rows), len(columns), x.shape[3])
    image = replace(x, shape=shape, recorded=shape)
    inner = row.prepare(node.with_input(0, image).with_options(**changed), arithmetic)
    depth = x.shape[3] if is_pool or point.groups == "own" else node.input(1).shape[3]
    fill = int(x.zero_point) if point.outside != "code 0" else 0
    low, high = type_range(CARRIER[x.type])
    data = WindowRulesData(inner, rows, columns, np.arange(x.shape[3]) % max(depth, 1), min(max(fill, low), high))
    return replace(inner, data=data, eval=eval_windows)


def _without(point: WindowRule) -> WindowRule:
    """Return the rule for windows without padding."""
    return replace(point, padding="all at the end")


def _places(out: int, stride: int, kernel: int, dilation: int, before: int) -> Array:
    """Return the positions that the windows span along an axis, the first one's first; some lie outside the image."""
    return np.arange(max(0, (out - 1) * stride + (kernel - 1) * dilation + 1)) - before


def _pooled(prepared: Prepared, at: Window, node: Node) -> Prepared:
    """Return the pool over another window; taps outside are left out, and a window without any is refused."""
    node.check(isinstance(prepared.data, (pooling.OpData, means.OpData)), "is no pool of codes")
    for out, stride, kernel, before, size in (
        (at.out_h, at.stride_h, at.kernel_h, at.pad_top, at.height),
        (at.out_w, at.stride_w, at.kernel_w, at.pad_left, at.width),
    ):
        starts = np.arange(out) * stride - before
        node.check(bool(np.all((starts < size) & (starts + kernel > 0))), "a window lies outside the image")
    return replace(prepared, data=replace(prepared.data, window=at))


def eval_windows(data: WindowRulesData, x: Array, *others: Array | None) -> Any:
    """Gather the rows and columns, fill those outside, and evaluate the row."""
    height, width = x.shape[1:3]
    image = x[:, data.rows.clip(0, height - 1)][:, :, data.columns.clip(0, width - 1)]
    rows, columns = ((at >= 0) & (at < size) for at, size in ((data.rows, height), (data.columns, width)))
    inside = rows[:, None] & columns
    image = np.where(inside[None, :, :, None], image, x.dtype.type(data.fill))[..., data.channels]
    return data.inner.eval(data.inner.data, np.ascontiguousarray(image), *others)
