"""Lookup tables of TFLite's current 8-bit and 16-bit kernels, their generation and their use.

sigmoid(i / 24) for i = 0..255 as TFLite publishes it, in units of 2**-16.

Data, not a formula: min(65535, round(65536 * sigmoid(i / 24))) is one less in 44 of the entries.
Source: LiteRT 2.3 tflite/kernels/internal/common.h, sigmoid_table_uint16.

LOGISTIC and TANH of int16 by the published sigmoid table.

The input is brought to units of 1 / (3 * 4096), so that one table step of 1/24 is 512 units; tanh(x) is
2 * sigmoid(2 x) - 1, hence steps of 256 units there.
Source: LiteRT 2.3 reference_integer_ops::Logistic, Tanh (int16); activations.cc TanhPrepare, SigmoidPrepare.

LOGISTIC and TANH of int8 in gemmlowp's fixed point, as computed before there were lookup tables.

Source: reference_integer_ops::Logistic, Tanh (int8), present in TensorFlow r1.15 and in LiteRT 2.3, used by the former.
The output scale is 1/256 with zero point -128 for LOGISTIC, 1/128 with zero point 0 for TANH.

Source: LiteRT 2.3 tflite/kernels/internal/common.h, LUTPopulate and LUTLookup. No operation is reordered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.elementary import logistic_into, tanh_into
from tflq.engine.numerics.estimates import MultiplyAdd, round_apart
from tflq.engine.numerics.libm import with_constants
from tflq.engine.numerics.multiplier import check_log2
from tflq.engine.numerics.rounding import floats_to_int32, nearest_half_away, rounding_divide_by_pot, wrap, wrap_int32
from tflq.typing import Array

# fmt: off
SIGMOID = np.array([
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794, 41432, 42064, 42688,
    43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443, 48964, 49475, 49975, 50464, 50942, 51409,
    51865, 52311, 52745, 53169, 53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433,
    57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110,
    61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990, 63090, 63186,
    63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030, 64090, 64148, 64204, 64257, 64308,
    64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900,
    64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208,
    65221, 65234, 65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367,
    65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433, 65438, 65442, 65445, 65449,
    65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491,
    65493, 65495, 65497, 65498, 65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513,
    65514, 65515, 65516, 65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
    65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530,
    65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
    65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535,
], np.uint16)
# fmt: on
SIGMOID.setflags(write=False)


def sigmoid_multiplier(input_scale: np.float32, largest_pot_shift: int) -> tuple[int, int]:
    """Return the multiplier and the right shift that convert inputs to units of 1 / 12288.

    A power-of-two scale 2**(k - 12) with 0 <= k <= `largest_pot_shift` (0 for LOGISTIC, 1 for TANH) gives (0, k): the
    multiplier 0 marks that case. For any other scale the shift is the smallest whose multiplier exceeds 32767 / 2, cut
    to an integer.
    """
    exponent, is_pot = check_log2(input_scale)
    if is_pot and 0 <= exponent + 12 <= largest_pot_shift:
        return 0, exponent + 12
    real, shift = float(input_scale) * 4096.0 * 3.0, 0
    while real <= 32767.0 / 2.0 and shift <= 30:
        real, shift = real * 2.0, shift + 1
    return int(real), shift


@compiled
def scale_to_table(x: Int, multiplier: Int, shift: Int) -> Int:
    """Convert int16 `x` to units of 1 / 12288: half up, the product wraps int32. Multiplier 0 means 3 * 2**shift."""
    if multiplier == 0:
        return wrap_int32(np.int64(x) * (np.int64(3) << np.int64(shift)))
    half = (np.int64(1) << np.int64(shift)) >> np.int64(1)
    return wrap_int32(np.int64(x) * np.int64(multiplier) + half) >> np.int64(shift)


@compiled
def logistic_int16(x: Int, multiplier: Int, shift: Int) -> Int:
    """Return sigmoid in units of 2**-15.

    This function guarantees: where it reads the table of 256, the index is below 255.
    """
    scaled = scale_to_table(x, multiplier, shift)
    magnitude = abs(scaled)
    index = magnitude >> np.int64(9)
    if index >= 255:
        result = np.int64(0x7FFF << 10)
    else:
        low, high = np.int64(SIGMOID[index]), np.int64(SIGMOID[index + 1])
        result = (low << np.int64(9)) + (magnitude & np.int64(511)) * (high - low)
    if scaled >= 0:
        return (result + np.int64(512)) >> np.int64(10)
    return (np.int64(1 << 25) - result + np.int64(511)) >> np.int64(10)


@compiled
def tanh_int16(x: Int, multiplier: Int, shift: Int) -> Int:
    """Return tanh in units of 2**-15.

    This function guarantees: where it reads the table of 256, the index is below 255.
    """
    scaled = scale_to_table(x, multiplier, shift)
    magnitude = abs(scaled)
    index = magnitude >> np.int64(8)
    if index >= 255:
        result = np.int64(0xFFFF << 8)
    else:
        low, high = np.int64(SIGMOID[index]), np.int64(SIGMOID[index + 1])
        result = (low << np.int64(8)) + (magnitude & np.int64(255)) * (high - low)
    if scaled >= 0:
        return wrap((result - np.int64(1 << 23) + np.int64(128)) >> np.int64(8), 16)
    return wrap((np.int64(1 << 23) - result + np.int64(127)) >> np.int64(8), 16)


#: Loops: (x, multiplier, shift, out), int16.
logistic_int16_into, tanh_int16_into = with_constants(logistic_int16, 8), with_constants(tanh_int16, 8)


Ints32 = NDArray[np.int32]
Rescale = Callable[[Ints32], Ints32]

#: Integer bits of the scaled input, Q4.27.
INPUT_INTEGER_BITS = 4


def logistic_int8(centred: Ints32, radius: int, rescale: Rescale) -> NDArray[np.int8]:
    """Return codes for `centred` inputs (1-D, code - zero point); `rescale` converts them to Q4.27.

    Rounding: to 8 fractional bits, half away. Inputs at the radius or beyond give the extreme codes.
    """
    return _by_fixed_point(centred, radius, rescale, logistic_into, 8, -128)


def tanh_int8(centred: Ints32, radius: int, rescale: Rescale) -> NDArray[np.int8]:
    """Return the hyperbolic tangent in fixed point, with 7 fractional bits in the result."""
    return _by_fixed_point(centred, radius, rescale, tanh_into, 7, 0)


def _by_fixed_point(
    centred: Ints32, radius: int, rescale: Rescale, function: Callable[..., None], fraction: int, zero_point: int
) -> NDArray[np.int8]:
    result = np.empty(centred.shape, np.int32)
    function(rescale(centred), INPUT_INTEGER_BITS, 32, result)
    divide: Any = rounding_divide_by_pot
    codes = np.array([divide(int(v), 31 - fraction) + zero_point for v in result], np.int32)
    codes = np.where(centred <= -radius, -128, np.where(centred >= radius, 127, codes))
    return np.clip(codes, -128, 127).astype(np.int8)


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
