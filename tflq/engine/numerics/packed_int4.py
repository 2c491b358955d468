"""Rows of floats against weights of four bits, packed two in a byte for vector code.

Packed weights are unsigned: an offset is added to each, and its share is subtracted at the end. With the offset 7, -8
does not fit. It becomes 8, and its bits spill into neighbours.
Source: LiteRT 2.3 optimized/4bit/sse_fully_connected.cc, fully_connected_common.h, as compiled with SSSE3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.numerics.contract import Contraction
from tflq.engine.numerics.dynamic_range import Floats, Ints8, Ints32
from tflq.engine.numerics.rounding import float_to_int32, round_half_away
from tflq.typing import Array

#: Weights of a row that are packed together, and bytes of which each holds two: one of the first half and one of the
#: second.
DEPTH = 32
#: The byte of a negative sum.
_BELOW = 0xFF


def pack(weights: Ints8, offset: int) -> NDArray[np.uint8]:
    """Return the values (N, K) that the kernel reads from the packed weights (N, K) of an even K.

    With the offset 7, a -8 becomes 15, and so does the weight that shares its byte as the high half. In whole groups of
    DEPTH, which vector code packs, a -8 of the first half also changes the weight two places later in the second half.

    Source: SsePackInner.
    """
    units, length = weights.shape
    lifted = np.full((units, -(-length // DEPTH), DEPTH), offset, np.uint8)
    lifted.reshape(units, -1)[:, :length] = (weights.astype(np.int16) + offset) & _BELOW
    first, second = lifted[..., : DEPTH // 2], lifted[..., DEPTH // 2 :]
    low, high = second & 15, first | second
    whole = slice(length // DEPTH)
    pairs = first[:, whole].reshape(units, -1, DEPTH // 8, 2, 2)  # of bytes, and of codes in a byte of the file
    carried = np.where(pairs[..., 0, :] == _BELOW, 15, 0).astype(np.uint8)
    low[:, whole].reshape(pairs.shape)[..., 1, :] |= carried
    high = (np.where(first == _BELOW, 15, first) | np.where(second == _BELOW, 15, 0)).astype(np.uint8)
    return np.concatenate([high, low], axis=-1).reshape(units, -1)[:, :length]


@dataclass(frozen=True, slots=True, eq=False)
class PackedMatrix:
    """Constant weights (N, K) of four bits, as packed."""

    products: Contraction
    scale: Floats  # (N,)
    offset: int  # added to weights before they were packed

    @classmethod
    def of(cls, weights: Ints8, scale: Floats, offset: int) -> PackedMatrix:
        """Pack `weights` of an even K."""
        return cls(Contraction.of(pack(weights, offset).T, (-128, 127)), scale, offset)

    def __call__(self, x: Floats, bias: Floats | None) -> Floats:
        """Return the rows `x` (B, K) times the weights, plus bias, (B, N).

        Rounding: offset times row scale times weight scale, plus bias, plus sum times row scale times weight scale,
        each rounded.

        Source: SseBatchQuantizeFloats4Bit, SseAssignBiasAndComputeOffsets, SseRunKernel, SseUnpack.
        """
        codes, scale = np.empty(x.shape, np.int8), np.empty(len(x), np.float32)
        _quantize(np.ascontiguousarray(x), codes, scale)
        share = -self.offset * codes.sum(1, dtype=np.int32)
        out = (share.astype(np.float32) * scale)[:, None] * self.scale
        if bias is not None:
            out += bias
        sums = self.products(codes.astype(self.products.real)).astype(np.float32)
        out += sums * scale[:, None] * self.scale
        return np.asarray(out)


@in_pieces(8, x="r", codes="r", scale="r")
@compiled
def _quantize(x: Floats, codes: Ints8, scale: Floats) -> None:
    """Quantize rows symmetrically.

    Quotients are float64, rounded to float32. NaN is no largest magnitude; what leaves int32 becomes 0.

    The caller guarantees: `x` and `codes` are (B, K), `scale` is (B).
    """
    for b in range(x.shape[0]):
        largest = np.float32(0)
        for k in range(x.shape[1]):
            if largest < abs(x[b, k]):
                largest = abs(x[b, k])
        if largest == 0:
            largest = np.float32(127)
        inverse = np.float32(127.0 / np.float64(largest))
        scale[b] = np.float32(np.float64(largest) / 127.0)
        for k in range(x.shape[1]):
            codes[b, k] = np.int8(float_to_int32(round_half_away(np.float64(x[b, k] * inverse))))


def blocks(codes: Array, zero_point: Ints32, weights: Ints8, scales: Floats) -> Floats:
    """Return quantized rows (B, K) times weights (N, K) with a scale for each block of a row (N, blocks), (B, N).

    Rounding: each block's sum times its scale, then the sum over blocks, in order; the share of the zero point is
    summed alike and subtracted.

    Source: fully_connected.cc EvalBlockwise4Bit.
    """
    units, count = scales.shape
    out, share = np.zeros((len(codes), units), np.float32), np.zeros(units, np.float32)
    runs = codes.reshape(len(codes), count, -1).astype(np.float32)
    parts = weights.reshape(units, count, -1).astype(np.float32)
    for block in range(count):
        out += runs[:, block] @ parts[:, block].T * scales[:, block]
        share += scales[:, block] * parts[:, block].sum(1)
    return np.asarray(out - zero_point.astype(np.float32)[:, None] * share, np.float32)
