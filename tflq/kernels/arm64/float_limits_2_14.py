"""The limits of floats in releases up to 2.14, optimized: where operands are broadcast, some are held as numbers.

Source: TensorFlow 2.14 optimized_ops.h Add, BroadcastAddFivefold, Mul, SubWithActivation; reference/sub.h
BroadcastSubSlow; reference/div.h BroadcastDivSlow; reference_ops.h Relu6; maximum_minimum.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.arm64.float_limits import (
    BLOCK,
    COMPARED,
    NUMBERS,
    RELU,
    Run,
    in_vectors,
    rectified,
    rows,
    where_equal,
)
from tflq.kernels.families.binary import prepare_plain
from tflq.kernels.families.vector_blocks import in_whole_blocks, run_of
from tflq.kernels.kernel import Array, Kernel, Shape


def of_sums(a: Shape, b: Shape) -> Run:
    """Where runs repeat and nothing stands still in them, the first element after whole blocks is the last compared."""
    length, stands_still = run_of(a, b)
    if a == b or stands_still or not length:
        return in_vectors(a, b)
    whole = in_whole_blocks(length, BLOCK)
    return Run(length, whole, min(whole + 1, length))


def larger_number(a: Array, b: Array) -> Array:
    """fmaxnm: a NaN loses, 0.0 is larger than -0.0."""
    return np.where(a == b, _bits(np.bitwise_and, a, b), np.fmax(a, b))


def smaller_number(a: Array, b: Array) -> Array:
    """fminnm: a NaN loses, -0.0 is smaller than 0.0."""
    return np.where(a == b, _bits(np.bitwise_or, a, b), np.fmin(a, b))


def _bits(operation: np.ufunc, a: Array, b: Array) -> Array:
    return np.asarray(operation(a.view(np.uint32), b.view(np.uint32))).view(np.float32)


ALIKE = (
    RELU,
    Kernel("RELU6", "float32 -> float32", rectified(6.0, lambda a, b: NUMBERS), (1, 3)),
    Kernel("MAXIMUM", "float32 float32 -> float32", prepare_plain(larger_number), (1, 4)),
    Kernel("MINIMUM", "float32 float32 -> float32", prepare_plain(smaller_number), (1, 4)),
)
KERNELS = (
    *rows(
        {
            "ADD": of_sums,
            "DIV": where_equal(lambda a, b: COMPARED, NUMBERS),
            "MUL": in_vectors,
            "SUB": where_equal(in_vectors, NUMBERS),
        }
    ),
    *ALIKE,
)
