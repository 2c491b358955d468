"""Products of rows and a constant matrix by float BLAS, or by plain dot products for single rows: for any processor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.contraction import Output
from tflq.engine.kernels.families.operand_rows import Rows
from tflq.engine.kernels.filling import Call
from tflq.engine.numerics.contract import Contraction, Range
from tflq.typing import Array


class Product(Protocol):
    """Rows of integers times one constant matrix: (R, K) -> (R, N)."""

    @property
    def real(self) -> np.dtype[Any]:
        """Type in which rows are given."""
        ...

    @property
    def accumulator(self) -> np.dtype[Any]:
        """Type of the sums."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)."""
        ...

    @property
    def block_rows(self) -> int:
        """How many rows to give at a time."""
        ...

    def __call__(self, rows: Array, out: Array) -> Array:
        """Return the sums (R, N) of `rows` (R, K) in `out`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Dots:
    """One or two rows: dot products of 16-bit integers in the source's own accumulator, which wraps as it does there.

    Reading the matrix is what takes time then, and 8-bit weights are a quarter of their floats.
    """

    weights: Array  # (N, K), centred, int8 or int16
    accumulator: np.dtype[Any]  # int32 or int64

    real: ClassVar[np.dtype[Any]] = np.dtype(np.int16)
    block_rows: ClassVar[int] = 2

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)."""
        return self.weights.shape[1], self.weights.shape[0]

    def __call__(self, rows: Array, out: Array) -> Array:
        """Multiply; see Product.__call__."""
        dots_into(rows, self.weights, out)
        return out


@in_pieces(lambda rows, weights, out: rows.size * len(weights), rows="r", out="r")
@compiled
def dots_into(rows: Array, weights: Array, out: Array) -> None:
    """Compute out[r, n] = rows[r] . weights[n], in the type of `out`.

    Prepare guarantees: `rows` is (R, K), `weights` (N, K) and `out` (R, N).
    """
    zero = out.dtype.type(0)
    for r in range(rows.shape[0]):
        row = rows[r]
        for n in range(weights.shape[0]):
            factors, total = weights[n], zero
            for k in range(row.size):
                total += np.int32(row[k]) * np.int32(factors[k])
            out[r, n] = total


def product(weights: Array, span: Range, rows: int, accumulator: np.dtype[Any]) -> Product:
    """Return the way to multiply `rows` rows of values in `span` by centred `weights` (K, N)."""
    if rows > Dots.block_rows:
        return Contraction.of(weights, span)
    narrow = np.int8 if weights.size and weights.min() >= -128 and weights.max() <= 127 else np.int16
    return Dots(np.array(weights.T, narrow, order="C"), accumulator)


@dataclass(frozen=True, slots=True, eq=False)
class FloatProducts:
    """Sums as exact floats, or in the source's accumulator, of blocks that are small enough for the cache."""

    rows: Rows
    groups: tuple[Product, ...]
    output: Output

    def into(self, x: Array, out: Array) -> Call:
        """Return the call that fills `out` (R, C) with the codes of an operand's rows; each group has a part of C."""
        return partial(self._fill, self.rows.codes(x), out)

    def _fill(self, codes: Array, out: Array) -> None:
        rows, first = len(out), self.groups[0]
        depth, width = first.shape
        block = max(1, min(rows, first.block_rows))
        patches = np.empty((block, depth), first.real)
        sums = np.empty((block, out.shape[1]), first.accumulator)
        for start in range(0, rows, block):
            count = min(block, rows - start)
            for g, contraction in enumerate(self.groups):
                self.rows.fill(codes, start, g, patches[:count])
                contraction(patches[:count], sums[:count, g * width : (g + 1) * width])
            self.output.into(sums[:count], out[start : start + count])
