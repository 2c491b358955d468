"""int32 sums of products of centred codes with constant 8-bit weights: on the integer units, else by BLAS.

Codes less their zero points, which differ from row to row, need nine bits: they are int16 here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.kernels.families.operand_rows import PlainRows, Rows
from tflq.engine.microkernels.product import Codes, IntegerProduct, summed
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.contract import Contraction, accumulators_int32
from tflq.typing import Array

#: Centred codes of 8 bits.
_REACH = (-255, 255)


@dataclass(frozen=True, slots=True, eq=False)
class HybridSums:
    """Products with the weights of all groups, by tiles with their geometries, or contractions if there are none."""

    rows: Rows
    tiles: tuple[tuple[IntegerProduct, Any], ...]
    contractions: tuple[Contraction, ...]

    @classmethod
    def of(cls, rows: Rows, matrices: Sequence[Array], count: int) -> HybridSums:
        """Prepare `count` rows, as they come out of an operand, for weights (K, N), one matrix a group."""
        wide = [np.ascontiguousarray(matrix, np.int16) for matrix in matrices]
        kernels = summed(Codes(np.dtype(np.int16), 0, rows.packer), wide, max(count, 1), np.dtype(np.int32))
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

    def of_codes(self, codes: Array) -> Array:
        """Return the sums (rows, channels), int32, of plain rows of codes that have zero point 0."""
        out = np.empty((len(codes), self.shape[1]), np.int32)
        self.into(codes.astype(np.int16), 0, out)
        return out
