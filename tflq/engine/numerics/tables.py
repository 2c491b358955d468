"""Lookup tables of TFLite's current 8-bit and 16-bit kernels, their generation and their use.

Source: LiteRT 2.3 tflite/kernels/internal/common.h, LUTPopulate and LUTLookup. No operation is reordered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.multiply_add import MultiplyAdd, round_apart
from tflq.engine.numerics.rounding import floats_to_int32, nearest_half_away, wrap
from tflq.typing import Array

#: A function over an array of float32 (or float64, where the table is made in float64), giving the same type.
Transform = Callable[[Array], Array]

_STEPS = 512


def table_8bit(
    transform: Transform,
    dtype: DTypeLike,
    input_scale: np.float32,
    input_zero_point: int,
    output_scale: np.float32,
    output_zero_point: int,
) -> Array:
    """Return the 256 output codes of an int8 or uint8 function, in the order of the input code's bits (0..127, then
    -128..-1).

    Everything is in float32: transform(scale * (code - zero point)) times the *reciprocal* of the output scale, rounded
    half away, plus the zero point, clamped. The source converts to int32 before it clamps; values beyond int32 are
    clamped all the same in the wheels, and what is not a number gives code 0. Source: LUTPopulateInt8.
    """
    codes = np.arange(256, dtype=np.uint8).view(np.dtype(dtype))
    limits = np.iinfo(codes.dtype)
    with np.errstate(all="ignore"):
        reciprocal = np.float32(1) / np.float32(output_scale)
        real = np.float32(input_scale) * (codes.astype(np.int32) - np.int32(input_zero_point)).astype(np.float32)
        rounded = nearest_half_away(transform(real) * reciprocal)
        clamped = np.clip(rounded + np.float32(output_zero_point), limits.min, limits.max)
    return floats_to_int32(np.where(np.isnan(clamped), np.float32(0), clamped)).astype(codes.dtype)


def leaves_int32(
    transform: Transform,
    dtype: DTypeLike,
    input_scale: np.float32,
    input_zero_point: int,
    output_scale: np.float32,
    output_zero_point: int,
) -> bool:
    """Return whether a result of `table_8bit` leaves int32 before it is clamped."""
    codes = np.arange(256, dtype=np.uint8).view(np.dtype(dtype)).astype(np.int32)
    with np.errstate(all="ignore"):
        real = np.float32(input_scale) * (codes - np.int32(input_zero_point)).astype(np.float32)
        steps = transform(real) * (np.float32(1) / np.float32(output_scale)) + np.float32(output_zero_point)
    return bool(np.any(~(np.abs(steps) < np.float32(2**31))))


def look_up_8bit(table: Array, x: Array) -> Array:
    """Return table[code] for every code of `x` (int8 or uint8, any shape)."""
    codes = np.asarray(x, order="C")  # np.ascontiguousarray would turn a scalar into a vector
    out = np.empty(codes.shape, table.dtype)
    look_up_8bit_into(table, codes.reshape(-1).view(np.uint8), out.reshape(-1))
    return out


@in_pieces(codes="r", out="r")
@compiled
def look_up_8bit_into(table: Array, codes: Array, out: Array) -> None:
    """Look up every code in the table.

    The caller guarantees: `codes` has the size of `out`, `table` 256 entries.
    """
    for i in range(out.size):
        out[i] = table[codes[i]]


def table_16bit(
    transform: Transform,
    input_scale: np.floating[Any],
    input_zero_point: int,
    output_scale: np.floating[Any],
    output_zero_point: int,
    multiply_add: MultiplyAdd = round_apart,
) -> NDArray[np.int16]:
    """Return 513 samples, 128 input codes apart, each lowered by half of the interpolation error at the midpoint.

    Computed in the type of the scales: float32, or float64 for SOFTMAX. The output zero point moves only the limits
    that the scale is taken from. Source: LUTPopulateInt16.
    """
    real = type(input_scale)
    low, high = -32768, 32767
    with np.errstate(all="ignore"):
        input_min = input_scale * real(low - input_zero_point)
        input_max = input_scale * real(high - input_zero_point)
        output_min = output_scale * real(low - output_zero_point)
        output_max = output_scale * real(high - output_zero_point)
        step = (input_max - input_min) / real(_STEPS)
        per_unit = real(65536) / (output_max - output_min)

        start = multiply_add(np.arange(_STEPS).astype(real), step, input_min)
        value = transform(start)
        middle = transform(start + step / real(2))
        following = transform(multiply_add(np.arange(1, _STEPS + 1).astype(real), step, input_min))

        sample = nearest_half_away(value * per_unit)
        interpolated = nearest_half_away(multiply_add(following, per_unit, sample) / real(2))
        bias = nearest_half_away((interpolated - nearest_half_away(middle * per_unit)) / real(2))
        last = nearest_half_away(transform(np.array([input_max], real)) * per_unit)
        samples = np.concatenate([sample - bias, last])
        return floats_to_int32(np.clip(samples, real(low), real(high))).astype(np.int16)


@compiled
def interpolate_16bit(x: Int, table: Array) -> Int:
    """Look up int16 `x` in the 513-entry table: the high 9 bits choose, the low 7 interpolate, half up. Source:
    LUTLookup.

    The caller guarantees: `x` is an int16 and `table` has 513 entries.
    """
    index = (np.int64(x) >> np.int64(7)) + np.int64(256)
    base = np.int64(table[index])
    slope = wrap(np.int64(table[index + 1]) - base, 16)
    return wrap(base + ((slope * (np.int64(x) & np.int64(127)) + np.int64(64)) >> np.int64(7)), 16)


def look_up_16bit(table: NDArray[np.int16], x: NDArray[np.int16]) -> NDArray[np.int16]:
    """Look up every element of `x` (any shape) in the table."""
    codes = np.asarray(x, order="C")  # np.ascontiguousarray would turn a scalar into a vector
    out = np.empty(codes.shape, np.int16)
    look_up_16bit_into(table, codes.reshape(-1), out.reshape(-1))
    return out


@in_pieces(2, x="r", out="r")
@compiled
def look_up_16bit_into(table: Array, x: Array, out: Array) -> None:
    """Look up every element of `x` in the table.

    The caller guarantees: `x` and `out` have the same size, `x` is int16 and `table` has 513 entries.
    """
    for i in range(x.size):
        out[i] = interpolate_16bit(x[i], table)
