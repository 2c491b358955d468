"""Mistakes in an operator's prepared constants: clamps, zero points, windows, tables, multipliers of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.ir import CARRIER, TensorType
from tflq.kernels.activation import LIMITS, code_range
from tflq.kernels.geometry import Window
from tflq.kernels.kernel import Node
from tflq.numerics.stages import type_range
from tflq.verification.mistakes.walking import parts_of, records_of

Array = NDArray[Any]

#: An operator's prepared data with one mistake, and what it is.
Mistaken = tuple[str, Any]

#: Sizes of tables: by 8-bit code; samples of a 16-bit function that lie 128 codes apart.
_TABLES = (256, 513)


def mistaken_constants(data: Any, node: Node) -> Iterator[Mistaken]:
    """Every mistake in the prepared data of an operator."""
    type_ = node.outputs[0].type
    if isinstance(type_, TensorType) and CARRIER[type_].kind in "iu":
        yield from _clamps(data, node, CARRIER[type_])
    yield from _zero_points(data)
    yield from _paddings(data)
    yield from _tables(data)
    yield from _multipliers(data)


def _at(place: str) -> str:
    return f" ({place})" if place else ""


def _clamps(data: Any, node: Node, dtype: np.dtype[Any]) -> Iterator[Mistaken]:
    """Records with integer limits `low` and `high`, in LSB of output."""
    low, high = type_range(dtype)
    span = high - low
    for place, record, rebuild in records_of(data):
        if not all(isinstance(getattr(record, side, None), int) for side in ("low", "high")):
            continue
        limits = {
            "no activation clamp": (low, high),
            "no lower limit of the activation": (low, record.high),
            "no upper limit of the activation": (record.low, high),
            "no clamp: codes wrap": (-(2**31), 2**31 - 1),
            "clamp of the signed type": (-(span // 2) - 1, span // 2),
            "clamp of the unsigned type": (0, span),
            "symmetric clamp": (max(record.low, -(span // 2)), record.high),
        }
        if int(node.options.get("fused_activation_function", 0)) in LIMITS:
            inside = code_range(node, node.outputs[0], _other_sign(dtype))
            limits["clamp of the other type inside the activation"] = inside
        for name, (below, above) in limits.items():
            yield name + _at(place), rebuild(replace(record, low=below, high=above))


def _other_sign(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"{'u' if dtype.kind == 'i' else 'i'}{dtype.itemsize}")


def _zero_points(data: Any) -> Iterator[Mistaken]:
    """Fields that are named so, one by one; limits stay where they are."""
    for place, record, rebuild in records_of(data):
        for field in fields(record):
            value = getattr(record, field.name)
            if field.init and "zero" in field.name and isinstance(value, int) and value:
                for name, changed in (("ignored", 0), ("with the wrong sign", -value)):
                    yield f"{field.name} {name}{_at(place)}", rebuild(replace(record, **{field.name: changed}))


def _paddings(data: Any) -> Iterator[Mistaken]:
    """Windows whose padding lies elsewhere: on the other side where it is odd, or all of it on one side."""
    for place, window, rebuild in parts_of(data, Window):
        down = _whole(window.height, window.kernel_h, window.stride_h, window.dilation_h, window.out_h)
        across = _whole(window.width, window.kernel_w, window.stride_w, window.dilation_w, window.out_w)
        paddings = {
            "SAME padding on the other side": (down - down // 2, across - across // 2),
            "SAME padding on the other side, vertically": (down - down // 2, window.pad_left),
            "SAME padding on the other side, horizontally": (window.pad_top, across - across // 2),
            "all padding at the end": (0, 0),
            "all padding at the start": (down, across),
            "half the kernel as padding": (window.kernel_h // 2, window.kernel_w // 2),
        }
        for name, (top, left) in paddings.items():
            inside = top <= down and left <= across
            if (top, left) != (window.pad_top, window.pad_left) and inside:
                yield name + _at(place), rebuild(window._replace(pad_top=top, pad_left=left))


def _whole(size: int, kernel: int, stride: int, dilation: int, out: int) -> int:
    """The padding at both ends together, in pixels."""
    return max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size)


def _tables(data: Any) -> Iterator[Mistaken]:
    for place, table, rebuild in parts_of(data, np.ndarray):
        if table.ndim == 1 and table.size in _TABLES and table.dtype.kind in "iu" and table.dtype.itemsize <= 2:
            for name, changed in _wrong_tables(table):
                yield name + _at(place), rebuild(changed)


def _wrong_tables(table: Array) -> Iterator[tuple[str, Array]]:
    order = np.arange(table.size)  # entries in ascending order of their codes
    if table.size == 256:
        shared = order < 128  # codes that both types have; the others lie beyond one end of the other type's table
        end = 127 if table.dtype.kind == "i" else 0
        yield "table read by the other signedness, held at its end", table[np.where(shared, order, end)]
        yield "table in the order of the other signedness", np.roll(table, 128)
        order = np.roll(order, 128) if table.dtype.kind == "i" else order
    lowest, highest = type_range(table.dtype)
    for step, way in ((1, "up"), (-1, "down")):
        held = order[np.clip(np.arange(table.size) + step, 0, table.size - 1)]
        yield f"table index off by one {way}", _moved(table, order, held)
        yield f"table index off by one {way}, around the ends", np.roll(table, -step)
        moved = np.clip(table.astype(np.int64) + step, lowest, highest)
        yield f"table value off by one {way}", moved.astype(table.dtype)


def _moved(table: Array, places: Array, sources: Array) -> Array:
    moved = np.empty_like(table)
    moved[places] = table[sources]
    return moved


def _multipliers(data: Any) -> Iterator[Mistaken]:
    """Fixed-point multipliers that are no stage: fields named `mantissa`, `multiplier`, `shift`."""
    for place, record, rebuild in records_of(data):
        for field in fields(record):
            value = getattr(record, field.name)
            if not field.init or isinstance(value, bool) or not isinstance(value, int):
                continue
            if "shift" in field.name:
                for step, way in ((1, "left"), (-1, "right")):
                    name = f"{field.name} off by one to the {way}{_at(place)}"
                    yield name, rebuild(replace(record, **{field.name: value + step}))
            elif ("mantissa" in field.name or "multiplier" in field.name) and abs(value) >= 1 << 16:
                held = min(value + (1 << 15) >> 16 << 16, 2**31 - 2**16)
                yield f"{field.name} of 16 bits{_at(place)}", rebuild(replace(record, **{field.name: held}))
                cut = value >> 16 << 16
                yield f"{field.name} of 16 bits, cut off{_at(place)}", rebuild(replace(record, **{field.name: cut}))
