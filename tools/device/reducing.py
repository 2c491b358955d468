"""AVERAGE_POOL_2D, MEAN and SUM."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device.codes import clamp, point, read, written
from device.contraction import axis
from device.description import Device
from device.scaling import FIXED, Ints, fixed, saturated, scaled, wrapped
from device.site import Site

Array = NDArray[Any]


def average_pool(site: Site, device: Device, x: Array) -> Array:
    """Compute AVERAGE_POOL_2D: the mean of the taps inside the image, on codes."""
    high, wide = int(site.options["filter_height"]), int(site.options["filter_width"])
    down = axis(site, device, "h", x.shape[1], high)
    across = axis(site, device, "w", x.shape[2], wide)
    codes = read(x, device.x_type)
    if device.x_order == "NCHW":
        n, h, w, c = codes.shape
        codes = codes.reshape(n, c, h, w).transpose(0, 2, 3, 1)
    out = np.empty((x.shape[0], down.out, across.out, x.shape[3]), np.int64)
    for oy in range(down.out):
        top = oy * down.stride - down.before
        for ox in range(across.out):
            left = ox * across.stride - across.before
            seen = codes[:, max(top, 0) : top + high, max(left, 0) : left + wide]
            taps = seen.shape[1] * seen.shape[2]
            total = seen.sum(axis=(1, 2))
            if device.counts_padding:
                total, taps = total + (high * wide - taps) * _padding(site, device), high * wide
            out[:, oy, ox] = _quotient(_narrow(total, device), taps, device)
    codes = np.clip(out, *clamp(site, device))
    return codes.astype(site.output.dtype)


def _narrow(total: Ints, device: Device) -> Ints:
    return wrapped(total, device.bits) if device.saturates == "never" else saturated(total, device.bits)


def _padding(site: Site, device: Device) -> int:
    return 0 if device.padding == "code 0" else site.input(0).zero


def _quotient(total: Ints, count: int, device: Device) -> Ints:
    if device.rounding == "floor":
        return total // count
    if device.rounding == "towards zero":
        return np.sign(total) * (np.abs(total) // count)
    if device.rounding == "half up":
        return (2 * total + count) // (2 * count)
    if device.rounding == "half even":
        return np.rint(total / count).astype(np.int64)
    return np.sign(total) * ((np.abs(total) + count // 2) // count)


def _rows(site: Site, codes: Ints) -> tuple[Ints, int]:
    """Return the sums over the axes, and the number of elements in each."""
    axes = site.input(1).value
    assert axes is not None
    over = tuple(sorted({int(a) % codes.ndim for a in axes.reshape(-1)}))
    return codes.sum(axis=over), prod(codes.shape[a] for a in over)


def mean(site: Site, device: Device, x: Array) -> Array:
    """Compute MEAN: the division by the count is part of the mantissa, shifted left as far as possible."""
    operand, y = site.input(0), site.output
    total, count = _rows(site, read(x, device.x_type))
    if device.averages_codes:
        quotient: Array = np.clip(_quotient(total, count, device), *clamp(site, device)).astype(y.dtype)
        return quotient.reshape(y.shape)
    centred = _narrow(total - count * point(operand.zero, device.x_zero), device)
    mantissa, exponent = fixed(float(np.float64(operand.scale) / np.float64(y.scale)))
    room = min(count.bit_length() - 1, 32, 31 + exponent)
    rounding = FIXED["twice" if device.rounding == "operator's" else device.rounding]
    part = np.int64((mantissa << room) // count)
    result = rounding(centred, part, np.int64(exponent - room + device.shift))
    return written(result, site, device).reshape(y.shape)


def total(site: Site, device: Device, x: Array) -> Array:
    """Compute SUM. The reference kernel reads and writes int8 codes as uint8."""
    operand, y = site.input(0), site.output
    as_bytes = device.reads_bytes and site.type == "int8"
    sums, count = _rows(site, read(x, "other" if as_bytes else device.x_type))
    centred = wrapped(sums - count * point(operand.zero, device.x_zero), device.bits)
    real = np.array([float(np.float64(operand.scale) / np.float64(y.scale))]) * 2.0**device.shift
    rounding = "twice" if device.rounding == "operator's" else device.rounding
    result = scaled(centred, real, rounding, device.mantissa)
    if as_bytes:
        codes: Array = np.clip(result + point(y.zero, device.y_zero), 0, 255).astype(np.uint8)
        return codes.view(np.int8).reshape(y.shape)
    return written(result, site, device).reshape(y.shape)
