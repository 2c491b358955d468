"""Rows of codes times constant matrices and through an output: bound in prepare to the fastest way that is exact.

On the integer units where the processor and the numbers allow, all in one pass or with int32 sums in between; else as
floats (`float_products`). All give the same codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from tflq.engine.kernels.families.contraction import Output
from tflq.engine.kernels.families.float_products import FloatProducts, product
from tflq.engine.kernels.families.operand_rows import Rows
from tflq.engine.kernels.filling import Call, in_turn
from tflq.engine.microkernels.product import Codes, IntegerProduct, fuse, summed
from tflq.engine.numerics.byte_rows import in_place, suits
from tflq.engine.numerics.contract import centred_range
from tflq.engine.numerics.stages import type_range
from tflq.typing import Array

#: Bytes of int32 sums that stay in a core's second-level cache.
_CACHE_BYTES = 1 << 18


class Products(Protocol):
    """Bound products of all groups, and what becomes of their sums."""

    def into(self, x: Array, out: Array) -> Call:
        """Return the call that fills `out` (R, C), contiguous, with the codes of an operand's rows; each group fills
        its part of C.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class FusedProducts:
    """On the integer units, codes to codes."""

    rows: Rows
    groups: tuple[tuple[IntegerProduct, Any], ...]  # with their geometries

    def into(self, x: Array, out: Array) -> Call:
        """Bind the product; see Products.into."""
        codes = self.rows.codes(x)
        return in_turn([product.into(out, 0, codes, geometry) for product, geometry in self.groups])


@dataclass(frozen=True, slots=True, eq=False)
class SummedProducts:
    """On the integer units, block by block, with int32 sums of a block in memory before its output is computed."""

    rows: Rows
    groups: tuple[tuple[IntegerProduct | RowsInPlace, Any], ...]  # with their geometries
    output: Output

    def into(self, x: Array, out: Array) -> Call:
        """Bind the product; see Products.into."""
        return partial(self._fill, self.rows.codes(x), out)

    def _fill(self, codes: Array, out: Array) -> None:
        rows, channels = out.shape
        block = max(1, min(rows, _CACHE_BYTES // (4 * max(1, channels))))
        sums = np.empty((block, channels), np.int32)
        for start in range(0, rows, block):
            part = out[start : start + block]
            for bound, geometry in self.groups:
                bound(sums[: len(part)], start, codes, geometry)
            self.output.into(sums[: len(part)], part)


@dataclass(frozen=True, slots=True, eq=False)
class RowsInPlace:
    """Sums of few rows times large weights (N, K) that are left where they lie."""

    rows: Rows
    weights: Array

    def __call__(self, out: Array, first_row: int, codes: Array, geometry: Any) -> None:
        """Fill `out` (R, N), int32, with the sums of the rows from `first_row` on."""
        centred = np.empty((len(out), self.weights.shape[1]), np.int16)
        self.rows.fill(codes, first_row, 0, centred)
        out[...] = in_place(centred, self.weights)


def _lies_by_columns(matrix: Array) -> bool:
    return matrix.dtype == np.int8 and matrix.T.flags.c_contiguous


def _fits(codes: Codes, bias: Array) -> bool:
    """Return whether centred codes fit int16, and an accumulator of the bias's type wraps as int32 does."""
    return bias.dtype == np.int32 and codes.largest < 1 << 15


def products(rows: Rows, matrices: Sequence[Array], codes: np.dtype[Any], count: int, output: Output) -> Products:
    """Return the best way to multiply `count` rows of codes by centred `matrices`, one (K, C / G) a group.

    K and C are above 0. Sums are those of an accumulator of the bias's type.
    """
    source = Codes(np.dtype(codes), int(rows.zero_point), rows.packer)
    bias = output.bias[: sum(matrix.shape[1] for matrix in matrices)]
    geometries = [rows.geometry(group) for group in range(len(matrices))]
    if len(matrices) == 1 and suits(matrices[0], count) and _lies_by_columns(matrices[0]) and _fits(source, bias):
        return SummedProducts(rows, ((RowsInPlace(rows, matrices[0].T), geometries[0]),), output)
    if kernels := fuse(source, matrices, count, bias, output.pipeline):
        return FusedProducts(rows, tuple(zip(kernels, geometries, strict=True)))
    if kernels := summed(source, matrices, count, bias.dtype):
        return SummedProducts(rows, tuple(zip(kernels, geometries, strict=True)), output)
    low, high = type_range(codes)
    span = centred_range((low, high), rows.zero_point)
    return FloatProducts(rows, tuple(product(m, span, count, bias.dtype) for m in matrices), output)
