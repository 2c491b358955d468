"""Tiles of float32 sums whose order is promised: k by k, product and sum rounded apart, many sums at a time.

Sums are independent of each other, so a tile holds `rows` by `columns` of them in registers and adds one product to
each in turn. The size of a tile changes no bit.

Tiles of float32 sums that are chains of fused multiply-adds.

A sum begins with its bias and takes a product for each k. Subnormal numbers are read and written as zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, compiling_is_off
from tflq.engine.jit.flushing import fma, is_native
from tflq.engine.jit.native import Unavailable
from tflq.engine.jit.processors import features
from tflq.engine.microkernels import kernel
from tflq.engine.microkernels.kernel import Arguments, FloatTile
from tflq.typing import Array


@cache
def choose() -> FloatTile:
    """Return the tile for this machine's registers: 12 of 16 hold sums, two weights, one a value of a row, one a
    product.
    """
    return FloatTile(6, 2, 4 if compiling_is_off() or "avx" not in features() else 8)


def definition(tile: FloatTile) -> Callable[..., None]:
    """Return the definition of a tile in Python, with the parameters of `tile_into` from `rows` on."""
    if tile.fused:
        return partial(_fused(tile).python, 0)

    def define(
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
        columns = slice(out_column, out_column + tile.columns)
        with np.errstate(all="ignore"):
            for r in range(min(count, tile.rows)):
                total = np.zeros(tile.columns, np.float32)
                for first in range(0, weights.shape[1], block):
                    part = np.zeros(tile.columns, np.float32)
                    for k in range(first, min(first + block, weights.shape[1])):
                        part += rows[row + r, k] * weights[panel, k]
                    total += part
                total += biases[columns]
                total = np.where(total < low, low, total)
                out[out_row + r, columns] = np.where(high < total, high, total)

    return define


def _operands(at: Arguments) -> tuple[Any, ...]:
    from tflq.engine.microkernels.emission import FloatOperands

    row, column = at.number("out_row"), at.number("out_column")
    return FloatOperands(
        rows=at.address("rows", at.number("row")),
        row_step=at.step("rows", 0),
        weights=at.address("weights", at.number("panel")),
        length=at.size("weights", 1),
        block=at.number("block"),
        biases=at.address("biases", column),
        low=at.number("low", "float32"),
        high=at.number("high", "float32"),
        out=at.address("out", row, column),
        out_step=at.step("out", 0),
        count=at.number("count"),
    )


@kernel.by_address(_operands, definition)
@compiled
def tile_into(
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
    """Compute out[out_row + r, first + c] = clamp(sum over k of rows[row + r, k] * weights[panel, k, c] + biases[first
    + c]) by the tile at an address.

    `first` is `out_column`; r goes through rows below `count`, which is 1 at least, and below tile.rows. Sums of
    `block` k each, the last of fewer, begin with 0, and are added to each other in order; a fused tile's begin with the
    bias, see fused_tiles. Clamping passes NaN, and the sign of a zero at a limit. `rows` is (R, K), `weights` (panels,
    K, columns), `biases` (N), all contiguous, with K and `block` at least 1; `out` has unit stride along its columns.

    The caller guarantees: `at` is a tile's for these columns; rows, panel and tile lie inside their arrays.
    """
    kernel.definition_at(at)(rows, row, weights, panel, block, biases, low, high, out, out_row, out_column, count)


def pack(weights: Array, tile: FloatTile) -> Array:
    """Return (K, N) weights as (panels, K, columns).

    The last panel ends with the last column, so it shares some with the panel before it. If N is less than one panel,
    the panel is filled up with zeros.
    """
    length, width = weights.shape
    filled = np.zeros((length, max(width, tile.columns)), np.float32)
    filled[:, :width] = weights
    return np.stack([filled[:, start : start + tile.columns] for start in panel_starts(width, tile)])


def panel_starts(width: int, tile: FloatTile) -> list[int]:
    """Return the first column of each panel of `width` columns, at least one panel's."""
    return [min(start, max(width - tile.columns, 0)) for start in range(0, width, tile.columns)]


#: Fewer rows have a tile of their own, with four vectors of columns from a width on. From `_MANY` rows on, a tile has
#: vectors of 512 bits.
_FEW, _WIDE, _MANY = 4, 32, 8
#: The tile's size, which `function_of` replaces.
ROWS = COLUMNS = 1


@cache
def fused_tiles_choose(rows: int, width: int) -> FloatTile:
    """Return the tile for this machine's registers, and for a product of these rows and columns.

    A tile computes all its rows, wanted or not. With few, further columns keep the processor busy.
    """
    if is_native() and rows < _FEW:
        return FloatTile(max(rows, 1), 4 if width >= _WIDE else 2, 8, fused=True)
    if is_native() and rows >= _MANY and "avx512f" in features():
        return FloatTile(8, 1, 16, fused=True)
    return FloatTile(6, 2, 8, fused=True)


@cache
def function_of(tile: FloatTile) -> tuple[Compiled[..., None], int]:
    """Return what computes a tile, and its first argument: `tile_into` and an address if the processor has the
    instructions, else the definition, which takes any number.
    """
    if is_native():
        with suppress(Unavailable):
            return tile_into, tile_into.address(tile)
    return _fused(tile), 0


def _fused(tile: FloatTile) -> Compiled[..., None]:
    return fused_tiles_definition.bind(ROWS=tile.rows, COLUMNS=tile.columns)


@compiled
def fused_tiles_definition(
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
            total = biases[out_column + c]
            for k in range(weights.shape[1]):
                total = fma(rows[row + r, k], weights[panel, k, c], total)
            total = low if total < low else total
            out[out_row + r, out_column + c] = high if high < total else total
