"""Float activations against narrow weights: bodies, and exact sums.

Float activations against narrow weights: the bodies that hybrid operators share.

The input is quantized when the operator runs, one scale for each row or image; sums of products are exact integers,
turned to float32 and scaled.
Source: LiteRT 2.3, EvalHybrid and EvalHybridPerChannel of the operators; tensor_utils AsymmetricQuantizeFloats,
SymmetricQuantizeFloats.

int32 sums of products of centred codes with constant 8-bit weights: on the integer units, else by BLAS.

Codes less their zero points, which differ from row to row, need nine bits: they are int16 here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.kernels.checks import require_rank
from tflq.engine.kernels.families.activation import clamp_in_place
from tflq.engine.kernels.families.contraction import OperandRows, PlainRows
from tflq.engine.kernels.kernel import SCALES_ELSEWHERE, Call, Node, Operand, close, in_turn
from tflq.engine.microkernels.product import CodeOperand, IntegerProduct, summed
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.dynamic_range import (
    QuantizedRows,
    Rescale,
    not_finite,
    quantize_centred,
    quantize_rows,
    rescale_apart,
    rescale_fused,
    rescale_rows,
)
from tflq.engine.numerics.products import Contraction, accumulators_int32
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


def read_as_int8(w: Array) -> Array:
    """Return weights as every hybrid kernel reads them: as int8, regardless of their type."""
    return np.ascontiguousarray(w).view(np.int8)


def is_blockwise(w: Operand) -> bool:
    """Return whether the scales are in tensors of their own."""
    details = None if w.quantization is None else w.quantization.details
    return details is not None and details.table in SCALES_ELSEWHERE


def block_scales(node: Node, table: Operand, length: int) -> tuple[Array, int]:
    """Return the scales as (rows, blocks), float32, and the elements of a block."""
    details = table.quantization.details if table.quantization is not None else None
    assert details is not None  # is_blockwise saw to it
    block, scales = int(details["block_size"]), table.block_scales
    blockwise = details.table == "BlockwiseQuantization" and table.type in (TensorType.INT4, TensorType.INT2)
    node.check(blockwise, "quantization", table, expected="blocks of 2 or 4 bits", got=f"{details.table}, {table.type}")
    require_rank(node, table, 2)
    node.check(block > 0 and length % block == 0, "block size", table, expected=f"a divisor of {length}", got=block)
    blocks = length // block
    fits = scales is not None and scales.dtype == np.float16 and scales.size >= table.shape[0] * blocks
    if scales is None or not fits:
        node.refuse("scales of blocks", table, expected=f"{table.shape[0] * blocks} constants of float16")
    return scales[: table.shape[0] * blocks].astype(np.float32).reshape(table.shape[0], blocks), block


def unit_scales(node: Node, w: Operand, units: int) -> np.float32 | Array:
    """Return one scale for all units, 0 if there is none; or one a unit if there are several."""
    q = w.quantization
    return w.scale if q is None or len(q.scale) <= 1 else channel_scales(node, w, units)


def channel_scales(node: Node, w: Operand, channels: int) -> Array:
    """Return one scale a channel, float32. Refuse fewer scales than the source reads."""
    q = w.quantization
    assert q is not None  # callers have seen scales
    dimension, count = q.quantized_dimension, len(q.scale)
    size = w.shape[dimension] if 0 <= dimension < len(w.shape) else None
    node.check(size == count, "number of weight scales", w, expected=size, got=count)
    if count < channels:
        raise UndefinedResultError(node.op, f"{count} weight scales for {channels} output channels")
    return q.scale[:channels].astype(np.float32)


def quantize_images(x: Array, asymmetric: bool) -> QuantizedRows:
    """Quantize every image of `x` (N, H, W, C) as one row. Source: the loop over batches in EvalHybridPerChannel."""
    return quantize_rows(np.ascontiguousarray(x, np.float32).reshape(x.shape[0], math.prod(x.shape[1:])), asymmetric)


def centre_images(x: Array) -> tuple[Array, Array]:
    """Quantize images asymmetrically; return code minus zero point (int16, the shape of `x`) and their scales."""
    rows = quantize_images(x, asymmetric=True)
    centred = rows.codes.astype(np.int16) - rows.zero_point.astype(np.int16)[:, None]
    return centred.reshape(x.shape), rows.scale


#: The promise of hybrid operators up to 2.14, which quantized floats and summed products in float64.
UNCLAIMED_2_14 = close("2.14 quantizes activations without the vector helpers of later releases")


#: Centred codes of 8 bits.
_REACH = (-255, 255)


@dataclass(frozen=True, slots=True, eq=False)
class HybridSums:
    """Products with the weights of all groups, by tiles with their geometries, or contractions if there are none."""

    rows: OperandRows
    tiles: tuple[tuple[IntegerProduct, Any], ...]
    contractions: tuple[Contraction, ...]

    @classmethod
    def of(cls, rows: OperandRows, matrices: Sequence[Array], count: int) -> HybridSums:
        """Prepare `count` rows, as they come out of an operand, for weights (K, N), one matrix a group."""
        wide = [np.ascontiguousarray(matrix, np.int16) for matrix in matrices]
        kernels = summed(CodeOperand(np.dtype(np.int16), 0, rows.packer), wide, max(count, 1), np.dtype(np.int32))
        tiles = tuple((kernel, rows.geometry(group)) for group, kernel in enumerate(kernels))
        return cls(rows, tiles, () if tiles else tuple(Contraction.of(matrix, _REACH) for matrix in wide))

    @classmethod
    def of_rows(cls, weights: Array, count: int) -> HybridSums:
        """Prepare `count` plain rows for weights (units, K)."""
        return cls.of(PlainRows(ZeroPoint(0), count, weights.shape[1]), [weights.T], count)

    @property
    def shape(self) -> tuple[int, int]:
        """K and N of a group."""
        return self.tiles[0][0].shape if self.tiles else self.contractions[0].shape

    def into(self, x: Array, first: int, out: Array) -> None:
        """Fill `out` (rows, channels), int32, with the sums of the rows from `first` on of an operand of int16."""
        codes = self.rows.codes(x)
        for product, geometry in self.tiles:
            product(out, first, codes, geometry)
        for group, contraction in enumerate(self.contractions):
            length, width = contraction.shape
            rows = np.empty((len(out), length), contraction.real)
            self.rows.fill(codes, first, group, rows)
            out[:, group * width : (group + 1) * width] = accumulators_int32(contraction(rows))

    def bound(self, x: Array, out: Array) -> list[Call]:
        """Return the calls that fill `out`, int32, with the sums of all rows."""
        codes = self.rows.codes(x)
        if self.tiles:
            return [product.into(out, 0, codes, geometry) for product, geometry in self.tiles]
        return [partial(self.into, codes, 0, out)]

    def of_codes(self, codes: Array) -> Array:
        """Return the sums (rows, channels), int32, of plain rows of codes that have zero point 0."""
        out = np.empty((len(codes), self.shape[1]), np.int32)
        self.into(codes.astype(np.int16), 0, out)
        return out


def multiply_dynamically(
    x: Array,
    each: int,
    sums: HybridSums,
    rescale: Rescale,
    scale: Array,
    bias: Array,
    clamp: NumberClamp,
    shared: int,
    out: Array,
) -> Call:
    """Return the call that fills `out` (rows, channels), float32, as XNNPACK multiplies floats by narrow weights.

    `x` is an operand whose rows of `each` elements are quantized by themselves; `shared` rows of `out` have one scale.
    """
    rows = x.reshape(-1, each)
    codes, totals, undefined = np.empty(rows.shape, np.int16), np.empty(out.shape, np.int32), np.zeros(1, np.int8)
    row = np.empty(len(rows), np.float32)
    quantize = quantize_centred.bound(rows, codes, row, np.empty(len(rows), np.int32), undefined)
    multiply = sums.bound(codes.reshape(x.shape), totals)
    is_fused = rescale is rescale_fused
    finish: Call = rescale_rows.bound(totals, 0, row, shared, scale, bias, is_fused, *clamp, out)
    if rescale not in (rescale_fused, rescale_apart):
        of_row = np.arange(len(out)) // shared

        def finish() -> None:
            out[...] = rescale(totals.astype(np.float32), row[of_row, None], scale, bias)
            clamp_in_place(out, *clamp)

    return in_turn([partial(check_quantized, quantize, undefined), *multiply, finish])


def check_quantized(quantize: Call, undefined: Array) -> None:
    """Quantize rows; raise if one cannot be, which is noted in `undefined`."""
    quantize()
    if undefined[0]:
        undefined[0] = 0
        raise not_finite()
