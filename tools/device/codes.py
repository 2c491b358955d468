"""Input and output of every quantized operator: codes read with their zero point, and results written as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from device.description import Device, Point
from device.scaling import Ints, half_away, wrapped
from device.site import Operand, Site

Array = NDArray[Any]


def point(zero: int, mistake: Point) -> int:
    """Return the zero point that the device uses."""
    return {"right": zero, "ignored": 0, "negated": -zero}[mistake]


def read(codes: Array, as_type: str) -> Ints:
    """Return codes as int64; "other": the same bits, of the other signedness."""
    if as_type == "other":
        codes = np.ascontiguousarray(codes).view(other(codes.dtype))
    return codes.astype(np.int64)


def other(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the same width and the other signedness."""
    return np.dtype(f"{'u' if dtype.kind == 'i' else 'i'}{dtype.itemsize}")


def written(scaled: Any, site: Site, device: Device) -> Array:
    """Return results in LSB of the output, without zero point, as codes: zero point, clamp, type."""
    y = site.output
    codes = np.asarray(scaled, np.int64) + point(y.zero, device.y_zero)
    if device.clamp != "wraps":
        codes = np.clip(codes, *clamp(site, device))
    stored = wrapped(codes, 8 * y.dtype.itemsize).astype(f"i{y.dtype.itemsize}").view(y.dtype)
    return _flipped(stored) if device.y_type == "other" else stored


def _flipped(codes: Array) -> Array:
    bits = np.ascontiguousarray(codes).view(f"u{codes.dtype.itemsize}")
    flipped: Array = np.bitwise_xor(bits, 1 << (8 * codes.dtype.itemsize - 1)).astype(bits.dtype).view(codes.dtype)
    return flipped


def clamp(site: Site, device: Device) -> tuple[int, int]:
    """Return the lowest and highest code of the device's output."""
    y = site.output
    low, high = y.limits
    if device.clamp == "other type":
        info = np.iinfo(other(y.dtype))
        low, high = int(info.min), int(info.max)
    activation = {"type": "NONE", "RELU": "RELU", "RELU6": "RELU6"}.get(device.clamp, site.activation)
    floor = {"RELU": 0.0, "RELU6": 0.0, "RELU_N1_TO_1": -1.0}.get(activation)
    ceiling = {"RELU6": 6.0, "RELU_N1_TO_1": 1.0}.get(activation)
    if floor is not None:
        low = max(low, _limit(floor, y))
    if ceiling is not None:
        high = min(high, _limit(ceiling, y))
    return low, high


def _limit(real: float, y: Operand) -> int:
    return y.zero + int(half_away(np.float32(real) / y.scale))
