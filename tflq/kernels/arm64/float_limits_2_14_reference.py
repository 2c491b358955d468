"""The limits of floats in releases up to 2.14, reference kernels: some are held as numbers.

Source: TensorFlow 2.14 reference/add.h, mul.h, sub.h SubWithActivation, BroadcastSubSlow; div.h BroadcastDivSlow.
"""

from __future__ import annotations

from math import prod

from tflq.kernels.arm64.float_limits import BLOCK, COMPARED, NUMBERS, Run, rows, where_equal
from tflq.kernels.arm64.float_limits_2_14 import ALIKE
from tflq.kernels.kernel import Shape


def of_equals(a: Shape, b: Shape) -> Run:
    """Where three elements are left over after blocks, a loop ends with one that is held as a number."""
    size = prod(a)
    return Run(size, 0, size - 1) if size > BLOCK and size % BLOCK == BLOCK - 1 else COMPARED


KERNELS = (
    *rows(
        {
            "ADD": where_equal(of_equals, COMPARED),
            "DIV": where_equal(lambda a, b: COMPARED, NUMBERS),
            "MUL": where_equal(of_equals, COMPARED),
            "SUB": where_equal(of_equals, NUMBERS),
        }
    ),
    *ALIKE,
)
