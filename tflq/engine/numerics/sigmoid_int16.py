"""LOGISTIC and TANH of int16 by the published sigmoid table.

The input is brought to units of 1 / (3 * 4096), so that one table step of 1/24 is 512 units; tanh(x) is
2 * sigmoid(2 x) - 1, hence steps of 256 units there.
Source: LiteRT 2.3 reference_integer_ops::Logistic, Tanh (int16); activations.cc TanhPrepare, SigmoidPrepare.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.rounding import wrap, wrap_int32
from tflq.engine.numerics.scaling import check_log2
from tflq.engine.numerics.sigmoid_table import SIGMOID
from tflq.typing import Array


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


@in_pieces(8, x="r", out="r")
@compiled
def logistic_int16_into(x: Array, multiplier: Int, shift: Int, out: Array) -> None:
    """Compute out = logistic_int16(x), both 1-D int16.

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = logistic_int16(x[i], multiplier, shift)


@in_pieces(8, x="r", out="r")
@compiled
def tanh_int16_into(x: Array, multiplier: Int, shift: Int, out: Array) -> None:
    """Compute out = tanh_int16(x), both 1-D int16.

    The caller guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        out[i] = tanh_int16(x[i], multiplier, shift)
