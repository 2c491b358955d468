"""ADD and SUB of float32 on AArch64: see tflq/kernels/families/float_limits.py."""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.float_limits import (
    COMPARED,
    NUMBERS,
    Loops,
    in_vectors,
    limited,
    of_equals,
    of_sums,
    where_equal,
)
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import opt, ref


def _rows(add: Loops, sub: Loops) -> tuple[Kernel, ...]:
    return limited("ADD", np.add, add, (1, 6)), limited("SUB", np.subtract, sub, (1, 5))


KERNELS = (
    *valid(opt("litert-1.0", cpu="arm64"), *_rows(in_vectors, where_equal(in_vectors, COMPARED))),
    *valid(opt(until="tflite-2.14", cpu="arm64"), *_rows(of_sums, where_equal(in_vectors, NUMBERS))),
    *valid(
        ref(until="tflite-2.14", cpu="arm64"), *_rows(where_equal(of_equals, COMPARED), where_equal(of_equals, NUMBERS))
    ),
)
