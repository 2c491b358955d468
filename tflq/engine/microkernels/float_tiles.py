"""Tiles of float32 sums whose order is promised: k by k, product and sum rounded apart, many sums at a time.

Sums are independent of each other, so a tile holds `rows` by `columns` of them in registers and adds one product to
each in turn. The size of a tile changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled, compiling_is_off
from tflq.engine.jit.targets import features
from tflq.engine.microkernels import called
from tflq.engine.microkernels.emitted import Arguments
from tflq.engine.microkernels.kernel import FloatTile
from tflq.typing import Array


@cache
def choose() -> FloatTile:
    """Return the tile for this machine's registers: 12 of 16 hold sums, two weights, one a value of a row, one a
    product.
    """
    return FloatTile(6, 2, 4 if compiling_is_off() or "avx" not in features() else 8)


@cache
def address_of(tile: FloatTile) -> int:
    """Return the address of an unfused tile, which `tile_into` takes.

    Raises:
        Unavailable: The system has no memory that may be executed.
    """
    return tile_into.address(tile, definition(tile))


def definition(tile: FloatTile) -> Callable[..., None]:
    """Return the definition of an unfused tile in Python, with the parameters of `tile_into` from `rows` on."""

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


def _write(module: Any, tile: FloatTile, name: str) -> Any:
    from tflq.engine.microkernels.float_emission import emit_function

    return emit_function(module, tile, name)


def _operands(at: Arguments) -> tuple[Any, ...]:
    from tflq.engine.microkernels.float_emission import Operands

    row, column = at.number("out_row"), at.number("out_column")
    return Operands(
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


@called.by_address(_write, _operands)
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
    called.definition_at(at)(rows, row, weights, panel, block, biases, low, high, out, out_row, out_column, count)


def pack(weights: Array, tile: FloatTile) -> Array:
    """Return (K, N) weights as (panels, K, columns).

    The last panel ends with the last column, so it shares some with the panel before it. If N is less than one panel,
    the panel is filled up with zeros.
    """
    length, width = weights.shape
    filled = np.zeros((length, max(width, tile.columns)), np.float32)
    filled[:, :width] = weights
    starts = range(0, width, tile.columns)
    last = filled.shape[1] - tile.columns
    return np.stack([filled[:, min(start, last) : min(start, last) + tile.columns] for start in starts])
