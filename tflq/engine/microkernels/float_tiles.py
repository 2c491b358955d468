"""Tiles of float32 sums whose order is promised: k by k, product and sum rounded apart, many sums at a time.

Sums are independent of each other, so a tile holds `rows` by `columns` of them in registers and adds one product to
each in turn. The size of a tile changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiling_is_off
from tflq.engine.jit.targets import features
from tflq.engine.microkernels.emitted import Arguments, Emitted, intrinsic_of
from tflq.engine.microkernels.kernel import FloatTile
from tflq.typing import Array


@cache
def chosen() -> FloatTile:
    """Return the tile for this machine's registers: 12 of 16 hold sums, two weights, one a value of a row, one a
    product.
    """
    return FloatTile(6, 2, 4 if compiling_is_off() or "avx" not in features() else 8)


def emitted(tile: FloatTile, defined: Callable[..., None] | None = None) -> Emitted:
    """Return the function of a tile, which `defined` defines; by default, as an unfused one."""
    return Emitted(tile, defined or definition(tile), _written)


def _written(tile: FloatTile, definition: Callable[..., None]) -> Any:
    from tflq.engine.microkernels.float_emission import Operands, emit_function

    def write(at: Arguments) -> None:
        row, column = at.number("out_row"), at.number("out_column")
        operands = Operands(
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
        at.builder.call(emit_function(at.builder.module, tile), list(operands))

    return intrinsic_of(definition, write)


def definition(tile: FloatTile) -> Callable[..., None]:
    """Return the definition of a tile in Python."""

    def tile_into(
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
        """Compute out[out_row + r, at + c] = clamp(sum over k of rows[row + r, k] * weights[panel, k, c] + biases[at +
        c]).

        `at` is `out_column`; r goes through rows below `count`, which is 1 at least, and below tile.rows. Sums of
        `block` k each, the last of fewer, begin with 0, and are added to each other in order. Clamping passes NaN, and
        the sign of a zero at a limit. `rows` is (R, K), `weights` (panels, K, columns), `biases` (N), all contiguous,
        with K and `block` at least 1; `out` has unit stride along its columns. The caller ensures that rows, panel and
        tile lie inside their arrays.
        """
        at = slice(out_column, out_column + tile.columns)
        with np.errstate(all="ignore"):
            for r in range(min(count, tile.rows)):
                total = np.zeros(tile.columns, np.float32)
                for first in range(0, weights.shape[1], block):
                    part = np.zeros(tile.columns, np.float32)
                    for k in range(first, min(first + block, weights.shape[1])):
                        part += rows[row + r, k] * weights[panel, k]
                    total += part
                total += biases[at]
                total = np.where(total < low, low, total)
                out[out_row + r, at] = np.where(high < total, high, total)

    return tile_into


def packed(weights: Array, tile: FloatTile) -> Array:
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
