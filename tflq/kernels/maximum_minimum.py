"""MAXIMUM, MINIMUM: y = a > b ? a : b, y = a < b ? a : b.

| operand | shape             | types                                              | quantization |
|---------|-------------------|----------------------------------------------------|--------------|
| a, b    | any, broadcasting | float32, float16, uint8, int8, int16, int32, int64 | ignored      |
| y       | broadcast         | as a                                               | ignored      |

Codes are compared as they are, regardless of their scales. AArch64 up to 2.14 has fmaxnm and fminnm for float32.
Source: LiteRT 2.3 and TensorFlow 2.14, maximum_minimum.cc Prepare, MaximumOp, MinimumOp.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.binary import prepare_plain
from tflq.kernels.kernel import Array, Kernel, valid
from tflq.kernels.validity import tflite


def maximum_float(a: Array, b: Array) -> Array:
    """Return the second operand if the comparison fails: for a NaN in either, and for zeros of either sign."""
    return np.where(a > b, a, b)


def minimum_float(a: Array, b: Array) -> Array:
    """Return the second operand if the comparison fails: for a NaN in either, and for zeros of either sign."""
    return np.where(a < b, a, b)


def larger_number(a: Array, b: Array) -> Array:
    """Compute fmaxnm: a NaN loses, 0.0 is larger than -0.0."""
    return np.where(a == b, _bits(np.bitwise_and, a, b), np.fmax(a, b))


def smaller_number(a: Array, b: Array) -> Array:
    """Compute fminnm: a NaN loses, -0.0 is smaller than 0.0."""
    return np.where(a == b, _bits(np.bitwise_or, a, b), np.fmin(a, b))


def _bits(operation: np.ufunc, a: Array, b: Array) -> Array:
    return np.asarray(operation(a.view(np.uint32), b.view(np.uint32))).view(np.float32)


KERNELS = (
    *(Kernel("MAXIMUM", f"{t} {t} -> {t}", prepare_plain(maximum_float), (1, 4)) for t in ("float32", "float16")),
    *(
        Kernel("MAXIMUM", f"{t} {t} -> {t}", prepare_plain(np.maximum), (1, 4))
        for t in ("uint8", "int8", "int16", "int32", "int64")
    ),
    *(Kernel("MINIMUM", f"{t} {t} -> {t}", prepare_plain(minimum_float), (1, 4)) for t in ("float32", "float16")),
    *(
        Kernel("MINIMUM", f"{t} {t} -> {t}", prepare_plain(np.minimum), (1, 4))
        for t in ("uint8", "int8", "int16", "int32", "int64")
    ),
    *valid(
        tflite(until="tflite-2.14", cpu="arm64"),
        Kernel("MAXIMUM", "float32 float32 -> float32", prepare_plain(larger_number), (1, 4)),
        Kernel("MINIMUM", "float32 float32 -> float32", prepare_plain(smaller_number), (1, 4)),
    ),
)
