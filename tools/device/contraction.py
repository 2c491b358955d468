"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: taps summed one by one, in the order ky, kx, channel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from device.codes import point, read, written
from device.description import Device
from device.scaling import Ints, Reals, saturated, scaled, wrapped
from device.site import Site

Array = NDArray[Any]


class Axis(NamedTuple):
    """One axis of a window, in pixels."""

    out: int
    stride: int
    dilation: int
    before: int


def axis(site: Site, device: Device, letter: str, size: int, kernel: int) -> Axis:
    """Return the window's positions along "h" or "w". SAME is 0, VALID 1."""
    stride = int(site.options[f"stride_{letter}"])
    dilation = int(site.options.get(f"dilation_{letter}_factor", 1))
    reach = (kernel - 1) * dilation + 1
    step, spread = device.stride or stride, 1 if device.ignores_dilation else dilation
    if int(site.options["padding"]) == 1:
        return Axis((size - reach) // stride + 1, step, spread, 0)
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + reach - size)
    return Axis(out, step, spread, total // 2 if device.larger_padding == "after" else total - total // 2)


def contract(site: Site, device: Device, x: Array) -> Array:
    """Return the operator's output codes, in the output's shape for inputs `x`."""
    codes, weights = read(x, device.x_type), filters(site, device) - point(site.input(1).zero, device.w_zero)
    if device.drops_last_row:
        weights[:, -1] = 0
    if device.shifts_weights:
        row = weights[device.channel % len(weights)]
        row[...] = np.roll(row.reshape(-1), 1).reshape(row.shape)
    if site.op == "FULLY_CONNECTED":
        codes, shape = codes.reshape(-1, 1, 1, weights.shape[3]), site.output.shape
        down = across = Axis(1, 1, 1, 0)
    else:
        codes = _as_nchw(codes) if device.x_order == "NCHW" else codes
        down = axis(site, device, "h", x.shape[1], weights.shape[1])
        across = axis(site, device, "w", x.shape[2], weights.shape[2])
        shape = (x.shape[0], down.out, across.out, weights.shape[0])
    total = _sums(site, device, codes, weights, down, across)
    result = _scaled(site, device, total)
    result[..., device.channel % len(weights)] += device.offset
    out = written(result, site, device).reshape(shape)
    return _stored_nchw(out) if device.y_order == "NCHW" else out


def filters(site: Site, device: Device) -> Ints:
    """Return weights as (O, KH, KW, channels of a group), in the memory order that the device assumes."""
    w = site.input(1)
    assert w.value is not None
    codes = read(w.value, device.w_type)
    if site.op == "FULLY_CONNECTED":
        units, length = codes.shape
        codes = codes.reshape(length, units).T if device.filter_order == "transposed" else codes
        return np.ascontiguousarray(codes).reshape(units, 1, 1, length)
    if site.op == "DEPTHWISE_CONV_2D":
        _, high, wide, channels = codes.shape
        if device.filter_order == "CHW":
            codes = codes.reshape(channels, high, wide).transpose(1, 2, 0)[None]
        elif device.filter_order == "WHC":
            codes = codes.reshape(wide, high, channels).transpose(1, 0, 2)[None]
        elif device.filter_order == "rotated":
            codes = codes[:, ::-1, ::-1]
        return np.ascontiguousarray(codes.transpose(3, 1, 2, 0))
    out, high, wide, channels = codes.shape
    if device.filter_order == "HWIO":
        codes = codes.reshape(high, wide, channels, out).transpose(3, 0, 1, 2)
    elif device.filter_order == "OIHW":
        codes = codes.reshape(out, channels, high, wide).transpose(0, 2, 3, 1)
    elif device.filter_order == "OWHI":
        codes = codes.reshape(out, wide, high, channels).transpose(0, 2, 1, 3)
    elif device.filter_order == "rotated":
        codes = codes[:, ::-1, ::-1]
    return np.ascontiguousarray(codes)


def _as_nchw(codes: Ints) -> Ints:
    n, h, w, c = codes.shape
    return np.ascontiguousarray(codes.reshape(n, c, h, w).transpose(0, 2, 3, 1))


def _stored_nchw(codes: Array) -> Array:
    return np.ascontiguousarray(codes.transpose(0, 3, 1, 2)).reshape(codes.shape)


def bias_of(site: Site, device: Device, channels: int) -> Ints:
    """Return the bias in LSB of the accumulator, length C."""
    operand = site.inputs[2] if len(site.inputs) > 2 else None
    if operand is None or operand.value is None or device.bias == "missing":
        return np.zeros(channels, np.int64)
    bias = operand.value.reshape(-1).astype(np.int64)
    second_half = np.arange(len(bias)) >= len(bias) // 2
    return {"doubled": bias * 2, "halved": bias >> 1, "missing in the second half": np.where(second_half, 0, bias)}.get(
        device.bias, bias
    )


def _sums(site: Site, device: Device, codes: Ints, weights: Ints, down: Axis, across: Axis) -> Ints:
    x, bias = site.input(0), bias_of(site, device, len(weights))
    x_zero = point(x.zero, device.x_zero)
    outside = {"left out": 0, "code 0": -x_zero, "negated": -2 * x.zero}[device.padding]
    half = 1 << (device.bits - 1)
    ends = (-half, half - 1) if device.saturates == "at each tap" else (-(1 << 62), 1 << 62)
    start = bias if device.bias_first else np.zeros_like(bias)
    total = np.empty((codes.shape[0], down.out, across.out, len(weights)), np.int64)
    _accumulate(np.ascontiguousarray(codes - x_zero), weights, start, outside, down, across, *ends, total)
    if not device.bias_first:
        total += bias
    if site.type == "int16" and device.bits == 32:
        return total
    return wrapped(total, device.bits) if device.saturates == "never" else saturated(total, device.bits)


@numba.njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _accumulate(
    x: Any, w: Any, start: Any, outside: int, down: Axis, across: Axis, low: int, high: int, out: Any
) -> None:
    """Compute out[n, oy, ox, o] = start[o] plus all taps x * w, limited to [low, high] after each.

    Taps outside the image count `outside` * w.
    """
    filters_of_a_group = w.shape[0] // (x.shape[3] // w.shape[3])
    for n in range(out.shape[0]):
        for oy in range(out.shape[1]):
            for ox in range(out.shape[2]):
                for o in range(out.shape[3]):
                    first = (o // filters_of_a_group) * w.shape[3]
                    total = start[o]
                    for ky in range(w.shape[1]):
                        y = oy * down.stride - down.before + ky * down.dilation
                        for kx in range(w.shape[2]):
                            column = ox * across.stride - across.before + kx * across.dilation
                            inside = 0 <= y < x.shape[1] and 0 <= column < x.shape[2]
                            for c in range(w.shape[3]):
                                value = x[n, y, column, first + c] if inside else outside
                                total = min(max(total + value * w[o, ky, kx, c], low), high)
                    out[n, oy, ox, o] = total


def multipliers(site: Site, device: Device, channels: int) -> Reals:
    """Return the multipliers from LSB of accumulator to LSB of output, one per channel."""
    x, w, y = site.input(0).scale, _chosen(site.input(1).scales, device), site.output.scale
    arithmetic = device.arithmetic
    if arithmetic == "operator's":
        arithmetic = "float32 product" if site.op != "FULLY_CONNECTED" and site.type == "uint8" else "float64"
    reals = {
        "float64": lambda: np.float64(x) * w.astype(np.float64) / np.float64(y),
        "float32 product": lambda: (x * w).astype(np.float64) / np.float64(y),
        "float32": lambda: ((x * w) / y).astype(np.float64),
    }[arithmetic]()
    return np.broadcast_to(reals * 2.0**device.shift * device.gain, channels).copy()


def _chosen(scales: Any, device: Device) -> Any:
    return {
        "own": lambda: scales,
        "first": lambda: np.full_like(scales, scales[0]),
        "largest": lambda: np.full_like(scales, scales.max()),
        "mean": lambda: np.full_like(scales, scales.astype(np.float64).mean()),
        "next": lambda: np.roll(scales, -1),
        "previous": lambda: np.roll(scales, 1),
    }[device.scales]()


def natural_rounding(site: Site) -> str:
    """Return the rounding of the reference kernel."""
    if site.op == "FULLY_CONNECTED":
        return "float64 half away"
    return "sixteen bits" if site.type == "int16" else "twice"


def _scaled(site: Site, device: Device, total: Ints) -> Ints:
    reals = multipliers(site, device, total.shape[3])
    natural = natural_rounding(site)
    rounding = natural if device.rounding == "operator's" else device.rounding
    result = scaled(total, reals, rounding, device.mantissa)
    whole = total.shape[3] - total.shape[3] % device.block if device.block else total.shape[3]
    if whole < total.shape[3]:
        result[..., whole:] = scaled(total[..., whole:], reals[whole:], natural, device.mantissa)
    return result
