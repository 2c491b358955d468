"""From codes to codes by micro-kernels: rows are packed block by block, and every block is multiplied with all panels
of weights.

`product_into` calls a packer and a tile, which `driver` inserts. A block's packed rows stay in a core's second-level
cache, a panel and the sums in the first.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.microkernels.kernel import Kernel
from tflq.engine.microkernels.tiles import tile_of
from tflq.typing import Array

#: Bytes of packed rows that stay in a core's second-level cache.
_BLOCK_BYTES = 1 << 16

#: The names that `driver` replaces: the packer, the tile, its size, and the type of packed values.
pack_into: Any = None
tile_into: Any = None
ROWS = COLUMNS = GROUP = 1
HAS_TERMS = False
LEFT: Any = np.int16


@cache
def driver(packer: Compiled[..., None], kernel: Kernel) -> Compiled[..., None]:
    """Return `product_into` with the packer and the tile of a kernel."""
    tile, form = kernel.tile, kernel.tile.form
    left = getattr(np, form.left)
    return product_into.bind(
        pack_into=_packing(packer, left),
        tile_into=tile_of(kernel),
        ROWS=tile.rows,
        COLUMNS=tile.columns,
        GROUP=form.group,
        HAS_TERMS=not form.is_wide,
        LEFT=left,
    )


@cache
def _packing(packer: Compiled[..., None], left: Any) -> Compiled[..., None]:
    """Return the packer for a type of packed values: one for all kernels, so that it is compiled once."""
    return packer.bind(LEFT=left)


def _passes(out: Array, first_row: Int, codes: Array, geometry: Any, length: Int, *rest: Any) -> int:
    """Return the passes of a scalar loop that take about as long; see pieces."""
    width = rest[-1]
    return int(len(out) * (length + 16) * width) >> 4


@in_pieces(_passes, are_independent=True, out="r", first_row="r")
@compiled
def product_into(
    out: Array,
    first_row: Int,
    codes: Array,
    geometry: Any,
    length: Int,
    shift: Int,
    fill: Int,
    factor: Int,
    weights: Array,
    constants: Array,
    zero_point: Int,
    low: Int,
    high: Int,
    first_column: Int,
    width: Int,
) -> None:
    """Compute out[r, first_column + c] for all rows of `out` (R, C) and `width` columns, from row `first_row` of the
    codes on.

    `codes` and `geometry` are the packer's: it packs a row's `length` values as code - shift, padding as `fill`.
    `factor` times the sum of a row's packed values is added to its sums. The last panel, and the last tile of a panel,
    overlap the one before it; what is narrower or lower than a tile goes through `edge`. Rows and values beyond the
    packed ones keep their memory's content: such rows give results that are not copied, such values meet weights of 0.

    Prepare guarantees: rows from `first_row` on are the packer's; packed values fit LEFT; `weights` is (panels, steps,
    COLUMNS * GROUP) with 0 < `length` <= steps * GROUP and as many panels as `width` columns take, `constants` has as
    many rows, of the kernel's words; first_column + width <= C; `out` has unit stride along C.
    """
    rows, filled = out.shape[0], weights.shape[1] * GROUP
    block = max(1, min(_BLOCK_BYTES // (filled * ROWS * 2), (rows + ROWS - 1) // ROWS)) * ROWS
    packed, terms = np.empty((block, filled), LEFT), np.zeros(block, np.int32)
    edge = np.empty((ROWS, COLUMNS), out.dtype)
    for first in range(0, rows, block):
        count = min(block, rows - first)
        pack_into(codes, geometry, first_row + first, count, shift, fill, packed, length)
        if HAS_TERMS and factor != 0:
            for r in range(count):
                terms[r] = np.int32(np.int64(factor) * _sum_of(packed[r], length))
        for panel in range(weights.shape[0]):
            valid = min(COLUMNS, width)
            column = first_column + min(panel * COLUMNS, width - valid)
            is_whole = valid == COLUMNS and count >= ROWS
            for r in range(0, count, ROWS):
                if is_whole:
                    at = min(r, count - ROWS)
                    tile_into(
                        packed, at, weights, panel, constants, terms, zero_point, low, high, out, first + at, column
                    )
                else:
                    tile_into(packed, r, weights, panel, constants, terms, zero_point, low, high, edge, 0, 0)
                    for i in range(min(ROWS, count - r)):
                        for c in range(valid):
                            out[first + r + i, column + c] = edge[i, c]


@compiled
def _sum_of(values: Array, length: Int) -> Int:
    """Return the sum of the first `length` values, modulo 2**32.

    The caller guarantees: there are `length` values at least.
    """
    total = np.uint32(0)
    for k in range(length):
        total += np.uint32(values[k])
    return np.int64(total)


@compiled
def pack_rows(
    codes: Array, geometry: Int, first: Int, count: Int, shift: Int, fill: Int, packed: Array, length: Int
) -> None:
    """Pack rows `first` to `first + count` of `codes` (R, length), contiguous, less `shift`, as packed[i, :length].

    Elements of `packed` beyond `length` stay as they are.

    Prepare guarantees: first + count <= R; `packed` has `count` rows of `length` values at least.
    """
    less = np.int32(shift)
    if packed.shape[1] == length:
        flat, source = packed.reshape(-1), codes[first : first + count].reshape(-1)
        for k in range(source.size):
            flat[k] = LEFT(np.int32(source[k]) - less)
    else:
        for r in range(count):
            for k in range(length):
                packed[r, k] = LEFT(np.int32(codes[first + r, k]) - less)
