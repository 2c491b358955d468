"""Products of quantized rows with weights of four bits whose scales belong to blocks of inputs.

Each block's sum is an exact integer; sums of blocks are added in float32, in an order that depends on the machine.
Source: XNNPACK, qd8-f32-qb4w-gemm and packing.cc xnn_pack_qs8_qb4w_gemm_goi_w.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.dynamic_range import Rows
from tflq.engine.numerics.multiply_add import fuse
from tflq.typing import Array

Floats = NDArray[np.float32]

#: Inputs that one step of the AVX2 kernel reads, and lanes over which it spreads them: two in a row share a lane.
_STEP, _LANES = 8, 4
#: Inputs whose weights are summed at a time when they are packed: two steps.
_PACKED = 16


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Weights (O, K) of four bits, in blocks of `size` along K, with a scale for each block (O, K / size), float32.

    Scales are bfloat16 values. `size` is a multiple of 32.
    """

    codes: NDArray[np.int8]
    scales: Floats
    size: int


#: Rows (B, K), weights, bias (O,) -> results (B, O), float32.
BlockProduct = Callable[[Rows, Blocks, Floats], Floats]


def to_bfloat16(values: Array) -> Floats:
    """Round finite float32 values half to even to those that bfloat16 has: 8 bits of mantissa."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


def sum_in_four_lanes(rows: Rows, weights: Blocks, bias: Floats) -> Floats:
    """Multiply as the AVX2 kernel does: four float32 sums a result, each over the inputs 2n and 2n + 1 modulo 8, added
    in pairs.

    The share of the zero point is a sum of its own, added to the first: 16 weights at a time, times their block's
    scale; product and sum are each rounded. Sums of blocks, and at the end scale and bias, are fused multiply-adds.
    """
    (count, length), units = rows.codes.shape, len(weights.codes)
    sums = np.zeros((count, units, _LANES), np.float32)
    sums[..., 0] = _pack(weights) * rows.zero_point.astype(np.float32)[:, None]
    for block in range(length // weights.size):
        inputs = slice(block * weights.size, (block + 1) * weights.size)
        codes, factors = (_lanes(values[:, inputs]) for values in (rows.codes, weights.codes))
        exact = (codes @ factors.transpose(0, 2, 1)).transpose(1, 2, 0)  # below 2**24 up to 2**14 inputs a lane
        sums = fuse(exact, weights.scales[:, block][None, :, None], sums)
    total = (sums[..., 0] + sums[..., 1]) + (sums[..., 2] + sums[..., 3])
    return fuse(total, rows.scale[:, None], bias[None, :])


def sum_by_block(rows: Rows, weights: Blocks, bias: Floats) -> Floats:
    """Multiply as the AVX-512 VNNI kernels do: one float32 sum a result, which begins with the share of the zero point.

    Codes are unsigned there: 128 is added to each. Sums of blocks are fused multiply-adds; scale and bias are rounded
    apart.

    Source: XNNPACK, qd8-f32-qb4w-gemm-1x16c8-minmax-avx512vnni.
    """
    codes = rows.codes.astype(np.float64) + 128
    zero_point = (rows.zero_point.astype(np.int64) + 128).astype(np.float32)
    total = _pack(weights) * zero_point[:, None]
    for block in range(codes.shape[1] // weights.size):
        inputs = slice(block * weights.size, (block + 1) * weights.size)
        exact = (codes[:, inputs] @ weights.codes[:, inputs].T.astype(np.float64)).astype(np.float32)
        total = fuse(exact, weights.scales[None, :, block], total)
    return np.asarray(total * rows.scale[:, None] + bias[None, :])


def _pack(weights: Blocks) -> Floats:
    """Return the amount that a zero point of 1 subtracts from each result, (O,)."""
    total = np.zeros(len(weights.codes), np.float32)
    for first in range(0, weights.codes.shape[1], _PACKED):
        part = weights.codes[:, first : first + _PACKED].sum(1, np.int32).astype(np.float32)
        total = total - part * weights.scales[:, first // weights.size]
    return total


def _lanes(codes: NDArray[np.int8]) -> Floats:
    """Return codes (N, K) as float32 by lane, (lanes, N, K / lanes)."""
    pairs = codes.reshape(len(codes), -1, _LANES, _STEP // _LANES)
    return np.ascontiguousarray(pairs.transpose(2, 0, 1, 3), np.float32).reshape(_LANES, len(codes), -1)
