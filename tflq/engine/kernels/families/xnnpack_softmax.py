"""Softmax of float32 rows as XNNPACK computes it on x86-64.

Differences from the largest, exps by a polynomial of fused multiply-adds, their sum, its reciprocal, one product each.
Two sums alternate between registers of a row, which has four a round; then one takes the registers that are left, and
halves of a register are added. The number of lanes, 8 for AVX2 and 16 for AVX-512, is the order of the sum.
Source: XNNPACK's softmax_nc_f32, compute_floating_point_softmax, f32-raddstoreexpminusmax rr2_p5_u32_acc2 (AVX2) and
rr2_p5_u64_acc2 (AVX-512F).
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.rows import as_rows
from tflq.engine.microkernels.flushed import add, begin_flushing, end_flushing, multiply, multiply_add
from tflq.typing import Array

_LOG2E, _MAGIC = float.fromhex("0x1.715476p+0"), float.fromhex("0x1.8000FEp23")
_LN2_HIGH, _LN2_LOW = float.fromhex("-0x1.62E400p-1"), float.fromhex("-0x1.7F7D1Cp-20")
_C5, _C4, _C3 = float.fromhex("0x1.0F9F9Cp-7"), float.fromhex("0x1.573A1Ap-5"), float.fromhex("0x1.555A80p-3")
_C2, _C1 = float.fromhex("0x1.FFFDC6p-2"), float.fromhex("0x1.FFFFF6p-1")
#: Below it, exps are 0.
_CUTOFF = float.fromhex("-0x1.5D589Ep6")


def softmax(x: Array, lanes: int) -> Array:
    """Return the softmax along the last dimension."""
    rows = np.ascontiguousarray(as_rows(x))
    out = np.empty_like(rows)
    softmax_rows(rows, np.empty((2, lanes), np.float32), out)
    return out.reshape(x.shape)


@compiled
def exp_of_difference(x: Real) -> Real:
    """Return exp(x), x <= 0."""
    if x < _CUTOFF:
        return np.float32(0)
    shifted = multiply_add(x, np.float32(_LOG2E), np.float32(_MAGIC))
    power = np.int32(np.float32(shifted).view(np.int32) << 23).view(np.float32)
    whole = add(shifted, np.float32(-_MAGIC))
    t = multiply_add(whole, np.float32(_LN2_LOW), multiply_add(whole, np.float32(_LN2_HIGH), x))
    p = multiply_add(np.float32(_C5), t, np.float32(_C4))
    p = multiply_add(p, t, np.float32(_C3))
    p = multiply_add(p, t, np.float32(_C2))
    p = multiply_add(p, t, np.float32(_C1))
    return multiply_add(multiply(t, power), p, power)


@in_pieces(lambda x, sums, out: 8 * x.size, x="r", out="r")
@compiled
def softmax_rows(x: Array, sums: Array, out: Array) -> None:
    """Fill `out` with the softmax of each row; `sums` is room for two registers.

    Prepare guarantees: `x` and `out` are (R, C) with C > 0, `sums` is (2, lanes) with a power of two of lanes.
    """
    before = begin_flushing()
    lanes, width = sums.shape[1], x.shape[1]
    for r in range(x.shape[0]):
        row, result = x[r], out[r]
        largest = row[0]
        for c in range(width):
            largest = row[c] if row[c] > largest else largest
        for c in range(width):
            result[c] = exp_of_difference(add(row[c], -largest))
        scale = np.float32(1) / _sum(result, sums, lanes)
        for c in range(width):
            result[c] = multiply(result[c], scale)
    end_flushing(before)


@compiled
def _sum(values: Array, sums: Array, lanes: Int) -> Real:
    """Return the sum of a row, in XNNPACK's order.

    The caller guarantees: `sums` is (2, `lanes`).
    """
    sums[:] = 0
    rounds = values.size // (4 * lanes) * 4 * lanes
    for first in range(0, rounds, lanes):
        total = sums[first // lanes % 2]
        for i in range(lanes):
            total[i] = add(values[first + i], total[i])
    total = sums[0]
    for i in range(lanes):
        total[i] = add(sums[1, i], total[i])
    for first in range(rounds, values.size, lanes):
        for i in range(min(lanes, values.size - first)):
            total[i] = add(values[first + i], total[i])
    half = lanes // 2
    while half:
        for i in range(half):
            total[i] = add(total[i + half], total[i])
        half //= 2
    return total[0]
