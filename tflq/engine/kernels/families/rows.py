"""Operators along the last axis: what SOFTMAX and LOG_SOFTMAX share."""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.elementary import exp_on_negative_values
from tflq.engine.numerics.fixedpoint import rescale
from tflq.engine.numerics.multiplier import Multiplier, multiply_greater_than_one
from tflq.typing import Array


def as_rows(x: Array) -> Array:
    """Return `x` as (rows, last axis), C-contiguous; a view if it already is."""
    return np.ascontiguousarray(x).reshape(-1 if x.size else 0, x.shape[-1])


def row_maxima(rows: Array) -> Array:
    """Return the largest of each row as a column, at least the type's lowest finite value; NaN is skipped.

    Source: the loops over std::max(max, x) of reference/softmax.h and log_softmax.h.
    """
    return np.asarray(np.fmax.reduce(rows, axis=1, keepdims=True, initial=np.finfo(rows.dtype).min))


def sum_rows(rows: Array) -> Array:
    """Return 0 + x[0] + x[1] + ... of each float32 row as a column, in that order, each sum rounded."""
    sums = np.empty((len(rows), 1), np.float32)
    _sum_rows(rows, sums)
    return sums


@in_pieces(x="r", out="r")
@compiled
def _sum_rows(x: Array, out: Array) -> None:
    """Eval guarantees: `out` is (rows, 1)."""
    for r in range(x.shape[0]):
        total = np.float32(0)
        for c in range(x.shape[1]):
            total += x[r, c]
        out[r, 0] = total


def fixed_point_exps(
    scaling: Multiplier, radius: int, difference_bits: int, sum_bits: int
) -> tuple[Array, Array, Array]:
    """Tabulate by an 8-bit code's distance to its row's largest (0..255): scaled difference, its exp, the summand.

    Scaled differences have `difference_bits` integer bits, exps are Q0.31, summands have `sum_bits` integer bits and
    are 0 beyond `radius`. `scaling` is that of the differences.
    """
    tables = np.zeros((3, 256), np.int32)
    _fill_exps(*scaling, radius, difference_bits, sum_bits, tables)
    return tables[0], tables[1], tables[2]


@compiled
def _fill_exps(mantissa: Int, shift: Int, radius: Int, difference_bits: Int, sum_bits: Int, tables: Array) -> None:
    """Fill the tables. Prepare guarantees: `tables` is (3, 256)."""
    for below in range(256):
        scaled = multiply_greater_than_one(-np.int64(below), mantissa, shift)
        tables[0, below] = scaled
        if below <= radius:
            exp = exp_on_negative_values(scaled, difference_bits, 32)
            tables[1, below] = exp
            tables[2, below] = rescale(exp, 0, sum_bits, 32)
