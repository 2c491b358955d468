"""LOGISTIC and TANH of int8 in gemmlowp's fixed point, as computed before there were lookup tables.

Source: reference_integer_ops::Logistic, Tanh (int8), present in TensorFlow r1.15 and in LiteRT 2.3, used by the former.
The output scale is 1/256 with zero point -128 for LOGISTIC, 1/128 with zero point 0 for TANH.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.elementary import logistic_into, tanh_into
from tflq.engine.numerics.fixedpoint import rounding_divide_by_pot

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
