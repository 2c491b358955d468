"""Tiles of float32 sums that are chains of fused multiply-adds.

A sum begins with its bias and takes a product for each k. Subnormal numbers are read and written as zeros.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache, partial

from tflq.engine.jit.addresses import Unavailable
from tflq.engine.jit.compiled import Compiled, Int, Real, compiled
from tflq.engine.microkernels.float_tiles import tile_into
from tflq.engine.microkernels.flushed import is_native
from tflq.engine.microkernels.kernel import FloatTile
from tflq.engine.numerics.normal_float32 import fma, read
from tflq.typing import Array

#: The tile's size, which `function_of` replaces.
ROWS = COLUMNS = 1


@cache
def choose() -> FloatTile:
    """Return the tile for this machine's registers, as float_tiles.chosen."""
    return FloatTile(6, 2, 8, fused=True)


@cache
def function_of(tile: FloatTile) -> tuple[Compiled[..., None], int]:
    """Return what computes a tile, and its first argument: `tile_into` and an address if the processor has the
    instructions, else the definition, which takes any number.
    """
    defined = definition.bind(ROWS=tile.rows, COLUMNS=tile.columns)
    if is_native():
        with suppress(Unavailable):
            return tile_into, tile_into.address(tile, partial(defined.python, 0))
    return defined, 0


@compiled
def definition(
    at: Int,
    rows: Array,
    row: Int,
    weights: Array,
    panel: Int,
    block: Int,
    biases: Array,
    low: Real,
    high: Real,
    out: Array,
    out_row: Int,
    out_column: Int,
    count: Int,
) -> None:
    """Compute out[out_row + r, first + c] = clamp(biases[first + c] + sum over k of products) for COLUMNS columns.

    A product is rows[row + r, k] * weights[panel, k, c]. `first` is `out_column`; r goes through rows below `count` and
    ROWS. Each product is added in order, with one rounding. Clamping passes NaN, and the sign of a zero at a limit.
    `at` and `block` are not used: sums have one block.
    The caller guarantees: `rows` is (R, K), `weights` (panels, K, COLUMNS) and `biases` (N), all contiguous; rows,
    panel and tile lie inside their arrays.
    """
    for r in range(min(count, ROWS)):
        for c in range(COLUMNS):
            total = read(biases[out_column + c])
            for k in range(weights.shape[1]):
                total = fma(read(rows[row + r, k]), read(weights[panel, k, c]), total)
            total = low if total < low else total
            out[out_row + r, out_column + c] = high if high < total else total
