"""ADD, SUB, MUL, LEAKY_RELU, QUANTIZE between integers, and functions by table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from device.codes import point, read, written
from device.description import Device
from device.scaling import Ints, half_away, scaled, wrapped
from device.site import Operand, Site

Array = NDArray[Any]


def _product(values: Any, real: Any, device: Device, last: bool = True) -> Ints:
    """Return values scaled like every requantization of the operator; `last`: the result is the output's."""
    rounding = "twice" if device.rounding == "operator's" else device.rounding
    reals = np.array([float(real) * 2.0 ** (device.shift if last else 0)])
    return scaled(values, reals, rounding, device.mantissa)


def add(site: Site, device: Device, a: Array, b: Array) -> Array:
    """Compute ADD and SUB with both inputs on a common scale: twice the larger of theirs, 20 (int16: 15) bits
    finer.
    """
    first, second, y = site.input(0), site.input(1), site.output
    sign = 1 if site.op == "ADD" else -1
    centred = (
        read(a, device.x_type) - point(first.zero, device.x_zero),
        read(b, device.x_type) - point(second.zero, device.second_zero),
    )
    if device.sums == "xnnpack":
        return written(_xnnpack_sum(site, centred, sign), site, device)
    left = 15 if site.type == "int16" else 20
    width: Any = np.float32 if device.arithmetic == "float32" else np.float64
    twice = width(np.float32(2) * max(first.scale, second.scale))
    finest = width(np.float32(1 << left) * y.scale)
    reals = (width(first.scale) / twice, width(second.scale) / twice, twice / finest)
    p, q = (_product(values << left, real, device, last=False) for values, real in zip(centred, reals[:2], strict=True))
    return written(_product(p + sign * q, reals[2], device), site, device)


def _xnnpack_sum(site: Site, centred: tuple[Ints, Ints], sign: int) -> Ints:
    ratios = [np.float64(site.input(i).scale / site.output.scale) for i in (0, 1)]
    shift = 20 - int(np.floor(np.log2(max(ratios))))
    p, q = (int(np.rint(r * 2.0**shift)) for r in ratios)
    return (centred[0] * p + sign * centred[1] * q + (1 << (shift - 1))) >> shift


def multiply(site: Site, device: Device, a: Array, b: Array) -> Array:
    """Compute MUL with a float32 multiplier."""
    first, second, y = site.input(0), site.input(1), site.output
    product = (read(a, device.x_type) - point(first.zero, device.x_zero)) * (
        read(b, device.x_type) - point(second.zero, device.second_zero)
    )
    if device.arithmetic == "float64":
        real = np.float64(first.scale) * np.float64(second.scale) / np.float64(y.scale)
    else:
        real = np.float64(first.scale * second.scale / y.scale)
    return written(_product(product, real, device), site, device)


def leaky_relu(site: Site, device: Device, x: Array) -> Array:
    """Compute LEAKY_RELU with one multiplier for each side of zero."""
    operand, y, alpha = site.input(0), site.output, np.float32(site.options["alpha"])
    centred = read(x, device.x_type) - point(operand.zero, device.x_zero)
    if device.arithmetic == "float64":
        above = np.float64(operand.scale) / np.float64(y.scale)
        below = np.float64(operand.scale) * np.float64(alpha) / np.float64(y.scale)
    else:
        above, below = np.float64(operand.scale / y.scale), np.float64(operand.scale * alpha / y.scale)
    sign = -1 if below < 0 else 1
    results = np.where(centred >= 0, _product(centred, above, device), sign * _product(centred, abs(below), device))
    return written(results, site, device)


def requantize(site: Site, device: Device, x: Array) -> Array:
    """Compute QUANTIZE of integers."""
    operand, y = site.input(0), site.output
    real = (
        operand.scale / y.scale if device.arithmetic == "float32" else np.float64(operand.scale) / np.float64(y.scale)
    )
    centred = wrapped(read(x, device.x_type) - point(operand.zero, device.x_zero), 32)
    return written(_product(centred, real, device), site, device)


def tabulate(site: Site, device: Device, x: Array) -> Array:
    """Compute LOGISTIC and TANH of 8 bits by a table in the order of the codes; its index is clamped."""
    operand = site.input(0)
    low, _ = operand.limits
    table = _table(site, device, operand)
    index = read(x, device.x_type) - low + device.index_step
    values = table[np.clip(index, 0, 255)].astype(np.int64) + device.value_step
    stored: Array = np.clip(values, *site.output.limits).astype(site.output.dtype)
    return stored


def _table(site: Site, device: Device, x: Operand) -> Array:
    low, high = x.limits
    centred = np.arange(low, high + 1) - point(x.zero, device.x_zero)
    real = x.scale * centred.astype(np.float32)
    wide = real.astype(np.float64)
    if site.op == "TANH":
        values = np.tanh(wide).astype(np.float32)
    else:
        values = np.float32(1) / (np.float32(1) + np.exp(-wide).astype(np.float32))
    product = values * (np.float32(1) / site.output.scale)
    rounding = {"floor": np.floor, "towards zero": np.trunc, "half even": np.rint}.get(device.rounding, half_away)
    return written(rounding(product), site, device)
