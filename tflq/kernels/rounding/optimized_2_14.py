"""CEIL and FLOOR of releases up to 2.14: zeros in whole groups of four elements are +0; the rest keep their sign.

Operands: tflq/kernels/rounding/ceil.py.
Source: TensorFlow 2.14 optimized/optimized_ops.h Ceil, Floor, by Eigen's pceil and pfloor without SSE4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tflq.kernels.families.unary import prepare_function
from tflq.kernels.kernel import Array, Kernel, valid
from tflq.kernels.validity import opt

_LANES = 4


def in_lanes(function: Callable[[Array], Array], x: Array) -> Array:
    """-0 + 0 is +0."""
    out = np.array(function(x), order="C")
    out.reshape(-1)[: x.size // _LANES * _LANES] += np.float32(0)
    return out


KERNELS = valid(
    opt(until="tflite-2.14", cpu="x86-64"),
    Kernel("CEIL", "float32 -> float32", prepare_function(partial(in_lanes, np.ceil)), (1, 1)),
    Kernel("FLOOR", "float32 -> float32", prepare_function(partial(in_lanes, np.floor)), (1, 1)),
)
