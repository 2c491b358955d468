"""Codes of XNNPACK that are scaled by one multiplier at or above the zero point and by another below it.

Source: XNNPACK's qs8 and qu8 vlrelu and vcvt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.multiplier import FixedMultiplier
from tflq.typing import Array

#: Bits after the point.
BITS = 8


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    input_zero_point: ZeroPoint  # LSB of input
    output_zero_point: ZeroPoint  # LSB of output
    positive: FixedMultiplier  # 2**-8 LSB of output per LSB of input, for x >= zero point
    negative: FixedMultiplier  # the same, times alpha
    clamp: Clamp  # LSB of output


def fix(real: np.float32) -> FixedMultiplier:
    """Return a real multiplier in steps of 1/256, half to even."""
    return FixedMultiplier(int(np.rint(np.float32(1 << BITS) * real)))


def evaluate(data: OpData, x: Array) -> Array:
    """Rounding: half up, of the product and the zero point together. Overflow: none."""
    centred = x.astype(np.int64) - data.input_zero_point
    scaled = centred * np.where(centred >= 0, data.positive, data.negative)
    codes = (scaled + (1 << BITS - 1) >> BITS) + data.output_zero_point
    clamped: Array = np.clip(codes, *data.clamp).astype(x.dtype)
    return clamped
