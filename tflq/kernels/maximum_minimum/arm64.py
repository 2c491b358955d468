"""MAXIMUM and MINIMUM of float32 on AArch64 up to 2.14: by fmaxnm and fminnm.

Source: TensorFlow 2.14 maximum_minimum.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.binary import prepare_plain
from tflq.kernels.kernel import Array, Kernel, valid
from tflq.kernels.validity import tflite


def larger_number(a: Array, b: Array) -> Array:
    """fmaxnm: a NaN loses, 0.0 is larger than -0.0."""
    return np.where(a == b, _bits(np.bitwise_and, a, b), np.fmax(a, b))


def smaller_number(a: Array, b: Array) -> Array:
    """fminnm: a NaN loses, -0.0 is smaller than 0.0."""
    return np.where(a == b, _bits(np.bitwise_or, a, b), np.fmin(a, b))


def _bits(operation: np.ufunc, a: Array, b: Array) -> Array:
    return np.asarray(operation(a.view(np.uint32), b.view(np.uint32))).view(np.float32)


KERNELS = valid(
    tflite(until="tflite-2.14", cpu="arm64"),
    Kernel("MAXIMUM", "float32 float32 -> float32", prepare_plain(larger_number), (1, 4)),
    Kernel("MINIMUM", "float32 float32 -> float32", prepare_plain(smaller_number), (1, 4)),
)
