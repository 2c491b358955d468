"""Mistakes in memory layouts: other orders of axes, codes of the other signedness, padding that is stored.

Each changes the operator's inputs or its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.prepared import parts_of
from tflq.diagnosis.mistakes.device import (
    Device,
    DeviceChange,
    Mistaken,
    Turn,
    Under,
    Values,
    off_by_128,
    read_as,
    stored_as,
    unchecked,
)
from tflq.engine.api.many import Part
from tflq.engine.kernels.geometry.windows import Padding, Window
from tflq.engine.profiles import Profile
from tflq.errors import UnsupportedError
from tflq.model.ir import Model, TensorType, view
from tflq.model.ir.constants import zero_point_of
from tflq.model.surgery.tap import with_constant, with_option, with_tensor
from tflq.typing import Array

#: Rows above and below, columns left and right.
_Sides = tuple[tuple[int, int], tuple[int, int]]
_Reorder = Callable[[Array, tuple[int, ...]], Array]

#: Operators whose results depend on elements of many places.
_CONTRACTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL")

_OTHER_SIGN = {np.dtype(np.int8): np.uint8, np.dtype(np.uint8): np.int8}
_OTHER_TYPE = {TensorType.INT8: TensorType.UINT8, TensorType.UINT8: TensorType.INT8}


def mistaken_layouts(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield codes of the other signedness, padding that is stored, and pixels that land in other places."""
    profile = unchecked(profile)
    yield from _signs(alone, profile)
    yield from _store_paddings(alone, profile)
    yield from _landings(alone, profile)


def orders_of_axes(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield images with channels first, and transposed images: results depend on all elements."""
    positions = [p for p, value in alone.inputs.items() if value.ndim == 4]
    axes = {"NCHW": (0, 3, 1, 2), "NWHC": (0, 2, 1, 3)}
    for name, order in axes.items():
        read, stored = _turn(read_as, stored_as, order), _turn(stored_as, read_as, order)
        for verb, turn in (("read", read), ("stored", stored)):
            for position in positions:
                yield DeviceChange(f"input {position} {verb} as {name}", profile, None, {position: turn})
            yield DeviceChange(f"results {verb} as {name}", profile, None, {}, turn)
        yield DeviceChange(f"everything in {name}", profile, None, dict.fromkeys(positions, read), stored)


def _turn(there: _Reorder, back: _Reorder, order: tuple[int, ...]) -> Turn:
    return Turn(_bind(there, order), _bind(back, order))


def _bind(change: _Reorder, order: tuple[int, ...]) -> Callable[[Array], Array]:
    return lambda x: change(x, order) if x.ndim == 4 else x


def _signs(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield 8-bit codes with a sign read as codes without one, and vice versa."""
    positions = [p for p, value in alone.inputs.items() if value.dtype in _OTHER_SIGN]
    for position in positions:
        yield f"codes of input {position} off by 128", Under(profile, given={position: off_by_128})
    if any(value.dtype in _OTHER_SIGN for value in alone.got.values()):
        yield "codes of the results off by 128", Under(profile, made=off_by_128)
    if positions:
        every = dict.fromkeys(positions, off_by_128)
        if len(positions) > 1:
            yield "codes of all inputs off by 128", Under(profile, given=every)
        yield "codes of inputs and results off by 128", Under(profile, given=every, made=off_by_128)
        yield "every tensor taken for the other signedness", _all_other(profile)
    name = alone.op.builtin
    if len(alone.got) == 1 and name not in _CONTRACTIONS:
        operands = _eight_bit_operands(alone.model)
        for operand in operands:
            yield f"codes of operand {operand} taken for the other signedness", _misread(profile, (operand,))
        if len(operands) > 1:
            yield "codes of all operands taken for the other signedness", _misread(profile, operands)


def _eight_bit_operands(model: Model) -> tuple[int, ...]:
    graph = view(model)
    tensors = [t for t in dict.fromkeys(graph.op(0).inputs) if t >= 0]
    return tuple(t for t in tensors if graph.tensors[t].type in _OTHER_TYPE and graph.tensors[t].quantization)


def _all_other(profile: Profile) -> Device:
    """Return a device with changed types and the same bits: inputs, constants, results."""

    def device(alone: Part) -> Values:
        model = alone.model
        for tensor, spec in enumerate(view(model).tensors):
            if isinstance(spec.type, TensorType) and spec.type in _OTHER_TYPE:
                model = with_tensor(model, tensor, replace(spec, type=_OTHER_TYPE[spec.type]))
        inputs = {p: v.view(_OTHER_SIGN.get(v.dtype, v.dtype)) for p, v in alone.inputs.items()}
        other = replace(alone, model=model, inputs=inputs)
        values = other.run(other.plan(profile))
        return {t: v.view(_OTHER_SIGN.get(v.dtype, v.dtype)) for t, v in values.items()}

    return device


def _misread(profile: Profile, operands: tuple[int, ...]) -> Device:
    """Return a device that reads operands in the other signedness.

    Codes beyond the half that both types share move by 256, which another zero point expresses. The results are
    computed element by element, so every result may depend only on the operands' elements at its own place.
    """

    def device(alone: Part) -> Values:
        (tensor,) = alone.got
        computed = alone.run(alone.plan(profile))[tensor]
        codes = [_operand(alone, operand) for operand in operands]
        if not all(x is not None and _broadcasts(x.shape, computed.shape) for x in codes):
            raise UnsupportedError("taken for the other signedness", reason="results depend on other places' elements")
        far = [np.broadcast_to(_beyond(x), computed.shape) for x in codes if x is not None]
        for moved in product((False, True), repeat=len(operands)):
            model = alone.model
            for operand, is_far in zip(operands, moved, strict=True):
                model = _with_moved_zero(model, operand) if is_far else model
            values = alone.run(alone.plan(profile, model))[tensor]
            here = np.logical_and.reduce([f if m else ~f for f, m in zip(far, moved, strict=True)])
            computed = np.where(here, values, computed)
        return {tensor: computed}

    return device


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(a in (1, b) for a, b in pairs)


def _operand(alone: Part, tensor: int) -> Array | None:
    """Return an operand's value, computed or constant."""
    return alone.inputs.get(tensor, alone.graph.constant(tensor))


def _beyond(x: Array) -> NDArray[np.bool_]:
    """Return a mask of codes that the other type lacks."""
    return x < 0 if x.dtype == np.int8 else x > 127


def _with_moved_zero(model: Model, tensor: int) -> Model:
    """Return a model with a zero point moved by 256: code - zero point of the code's other reading."""
    spec = view(model).tensors[tensor]
    assert spec.quantization is not None
    step = -256 if spec.type == TensorType.INT8 else 256
    moved = replace(spec.quantization, zero_point=spec.quantization.zero_point + step)
    return with_tensor(model, tensor, replace(spec, quantization=moved))


def _store_paddings(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield windows over an image that stores its padding as codes that count like all others."""
    operator = alone.op
    options = operator.options
    if options is None or options.get("padding") != Padding.SAME:
        return
    prepared = alone.plan(profile).steps[0].prepared
    window = next((part.value for part in parts_of(prepared, Window)), None)
    image = next((p for p in operator.inputs if p in alone.inputs and alone.inputs[p].ndim == 4), None)
    if window is None or image is None or alone.inputs[image].shape[1:3] != (window.height, window.width):
        return
    spec = alone.graph.tensors[image]
    points = spec.quantization.zero_point if spec.quantization is not None else np.zeros(1, np.int64)
    zero = int(points[0]) if points.size else 0
    dtype = alone.inputs[image].dtype
    fills = {"its zero point": zero, "0": 0, "the zero point with the wrong sign": -zero, "1": 1, "-1": -1}
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fills |= {"the lowest code": int(limits.min), "the highest code": int(limits.max)}
        fills = {name: value for name, value in fills.items() if limits.min <= value <= limits.max}
    for name, value in fills.items():
        for side, place in ((False, ""), (True, ", SAME padding on the other side")):
            filled = partial(_filled, value)
            yield f"padding stored as {name}{place}", _pad(alone, profile, image, window, filled, other_side=side)

    for name, fill in _CONTENTS.items():
        for sides, place in (
            ((True, True), ""),
            ((True, False), ", below and above"),
            ((False, True), ", at the sides"),
        ):
            yield f"padding {name}{place}", _pad(alone, profile, image, window, fill, zero, sides)


def _landings(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield transposed convolutions in which input rows or columns after the first land early in the output.

    A device that subtracts the padding from the first row only is early by the padding modulo the stride.
    """
    if alone.op.builtin != "TRANSPOSE_CONV" or alone.graph.constant(alone.op.inputs[0]) is None or len(alone.got) != 1:
        return
    prepared = alone.plan(profile).steps[0].prepared
    window = next((part.value for part in parts_of(prepared, Window)), None)
    if window is None:
        return
    early = window.pad_top % window.stride_h, window.pad_left % window.stride_w
    for (down, across), word in {(early[0], 0): "rows", (0, early[1]): "columns", early: "rows and columns"}.items():
        for fill, text in ((0, "hold 0"), (None, "hold what is left")) if down or across else ():
            name = f"input {word} after the first land {max(down, across)} early (padding modulo stride)"
            yield f"{name}, the last output {word} {text}", _land(profile, window, (down, across), fill)


def _land(profile: Profile, window: Window, early: tuple[int, int], fill: int | None) -> Device:
    """Return the operator with stride 1 over an image with its pixels as far apart as they land."""
    extents = (window.kernel_h, window.stride_h, window.pad_top), (window.kernel_w, window.stride_w, window.pad_left)

    def device(alone: Part) -> Values:
        ((tensor, got),) = alone.got.items()
        shape, image, output = alone.op.inputs[0], alone.op.inputs[2], alone.op.outputs[0]
        specs, x = alone.graph.tensors, alone.inputs[image]
        places = [
            np.maximum(0, np.arange(n) * stride - by)
            for n, (_, stride, _), by in zip(x.shape[1:3], extents, early, strict=True)
        ]
        zero = zero_point_of(specs[image])
        spread = np.full((x.shape[0], places[0][-1] + 1, places[1][-1] + 1, x.shape[3]), zero, x.dtype)
        spread[:, places[0][:, None], places[1]] = x
        whole = (
            got.shape[0],
            *(n + kernel - 1 for n, (kernel, _, _) in zip(spread.shape[1:3], extents, strict=True)),
            got.shape[3],
        )
        model = with_option(with_option(alone.model, "stride_h", 1), "stride_w", 1)
        model = with_option(with_constant(model, shape, np.array(whole, np.int32)), "padding", int(Padding.VALID))
        model = with_tensor(model, output, replace(specs[output], shape=whole, shape_signature=None))
        other = replace(alone, model=model, inputs={**alone.inputs, image: spread})
        made = other.run(other.plan(profile))[tensor][:, extents[0][2] :, extents[1][2] :]
        made = made[:, : got.shape[1], : got.shape[2]]
        missing = [(0, n - m) for n, m in zip(got.shape, made.shape, strict=True)]
        result = np.pad(made, missing)
        if fill is not None:
            result[:, got.shape[1] - early[0] :] = fill
            result[:, :, got.shape[2] - early[1] :] = fill
        return {tensor: result}

    return device


def _read_on(x: Array, sides: _Sides) -> Array:
    """Return the image with what lies in memory before and behind each row in place of padding; 0 beyond the ends."""
    n, h, w, c = x.shape
    (top, bottom), (left, right) = sides
    rows = np.arange(-top, h + bottom)[:, None] * w + np.arange(-left, w + right)[None, :]
    flat = x.reshape(n, h * w, c)
    inside = (rows >= 0) & (rows < h * w)
    return np.where(inside[None, :, :, None], flat[:, rows.clip(0, h * w - 1)], x.dtype.type(0))


def _filled(value: int, x: Array, sides: _Sides) -> Array:
    return np.pad(x, ((0, 0), *sides, (0, 0)), constant_values=value)


def _by_mode(mode: Any) -> Callable[[Array, _Sides], Array]:
    return lambda x, sides: np.pad(x, ((0, 0), *sides, (0, 0)), mode=mode)


#: Contents that devices read in place of padding.
_CONTENTS: dict[str, Callable[[Array, _Sides], Array]] = {
    "not made: rows are read on into the next": _read_on,
    "repeats the edge": _by_mode("edge"),
    "reflects the image": _by_mode("reflect"),
    "wraps around": _by_mode("wrap"),
}


def _pad(
    alone: Part,
    profile: Profile,
    image: int,
    window: Window,
    fill: Callable[[Array, _Sides], Array],
    zero: int = 0,
    chosen: tuple[bool, bool] = (True, True),
    *,
    other_side: bool = False,
) -> Device:
    """Return the operator without padding over an image with other contents around it, on the chosen axes."""
    down = _reach(window.out_h, window.stride_h, window.kernel_h, window.dilation_h)
    across = _reach(window.out_w, window.stride_w, window.kernel_w, window.dilation_w)
    vertical = window.pad_top, max(0, down - window.height - window.pad_top)
    horizontal = window.pad_left, max(0, across - window.width - window.pad_left)
    if other_side:
        vertical, horizontal = vertical[::-1], horizontal[::-1]
    inner = (vertical if chosen[0] else (0, 0), horizontal if chosen[1] else (0, 0))
    outer = ((0, 0) if chosen[0] else vertical, (0, 0) if chosen[1] else horizontal)

    def padded(x: Array) -> Array:
        return np.ascontiguousarray(np.pad(fill(x, inner), ((0, 0), *outer, (0, 0)), constant_values=zero))

    return Under(profile, with_option(alone.model, "padding", int(Padding.VALID)), {image: padded})


def _reach(out: int, stride: int, kernel: int, dilation: int) -> int:
    """Return the number of rows, or columns, that all windows see together."""
    return (out - 1) * stride + (kernel - 1) * dilation + 1
