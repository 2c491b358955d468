"""From codes to codes by micro-kernels: rows are packed block by block, and every block is multiplied with all panels
of weights.

`product_into` calls a tile by its address, so that there is one for all kernels, and a packer, which `driver` inserts.
Codes are given as their bytes. A block's packed rows stay in a core's second-level cache, a panel and the sums in the
first.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.microkernels.tiles import tile_into
from tflq.typing import Array

#: Bytes of packed rows that stay in a core's second-level cache.
_BLOCK_BYTES = 1 << 16

#: The names that `driver` replaces: the packer, and the type of packed values.
pack_into: Any = None
LEFT: Any = np.int16


@cache
def driver(packer: Compiled[..., None], left: str) -> Compiled[..., None]:
    """Return `product_into` with a packer of values of the type `left`."""
    kind = getattr(np, left)
    return product_into.bind(pack_into=packer.bind(LEFT=kind), LEFT=kind)


def rows_at_once(tile_rows: int, filled: int) -> int:
    """Return the number of rows with that many values each that are packed at a time: whole tiles."""
    return max(1, _BLOCK_BYTES // (filled * tile_rows * 2)) * tile_rows


def _passes(out: Array, first_row: Int, codes: Array, geometry: Any, length: Int, *rest: Any) -> int:
    """Return the passes of a scalar loop that take about as long; see pieces."""
    width = rest[-1]
    return int(len(out) * (length + 16) * width) >> 4


@writes("out")
@in_pieces(_passes, frees_threads=True, out="r", first_row="r")
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
    tile: Int,
    tile_rows: Int,
    tile_columns: Int,
    code_bytes: Int,
    filled: Int,
    most: Int,
    weights: Array,
    constants: Array,
    zero_point: Int,
    low: Int,
    high: Int,
    first_column: Int,
    width: Int,
) -> None:
    """Compute codes[r, first_column + c] for all rows of `out` (R, C * code_bytes), their bytes, and `width` columns,
    from row `first_row` of the codes on.

    `codes` and `geometry` are the packer's: it packs a row's `length` values as code - shift, padding as `fill`.
    `factor` times the sum of a row's packed values is added to its sums. `tile` is the address of a tile of that many
    rows and columns. `most` rows, see rows_at_once, are packed at a time, each in `filled` places. The last panel, and
    the last tile of a panel, overlap the one before it; what is narrower or lower than a tile goes through `edge`. Rows
    and values beyond the packed ones keep their memory's content: such rows give results that are not copied, such
    values meet weights of 0.

    Prepare guarantees: rows from `first_row` on are the packer's; packed values fit LEFT; the tile is of a kernel with
    that LEFT, and codes of `code_bytes`; `weights` is (panels, steps, tile_columns * group) with 0 < `length` <=
    `filled` = steps * group and as many panels as `width` columns take; `constants` has as many rows, of the kernel's
    words; first_column + width <= C; `out` has unit stride along C.
    """
    rows = out.shape[0]
    block = min(most, rows + tile_rows)  # room for whole tiles, found without a division
    packed, terms = np.empty((block, filled), LEFT), np.zeros(block, np.int32)
    edge = np.empty((tile_rows, tile_columns * code_bytes), np.uint8)
    for first in range(0, rows, block):
        count = min(block, rows - first)
        pack_into(codes, geometry, first_row + first, count, shift, fill, packed, length)
        if factor != 0:
            for r in range(count):
                terms[r] = np.int32(np.int64(factor) * _sum_of(packed[r], length))
        for panel in range(weights.shape[0]):
            valid = min(tile_columns, width)
            column = (first_column + min(panel * tile_columns, width - valid)) * code_bytes
            is_whole = valid == tile_columns and count >= tile_rows
            for start in range(0, count, tile_rows):
                if is_whole:
                    r = min(start, count - tile_rows)
                    y = first + r
                    tile_into(tile, packed, r, weights, panel, constants, terms, zero_point, low, high, out, y, column)
                else:
                    r = start
                    tile_into(tile, packed, r, weights, panel, constants, terms, zero_point, low, high, edge, 0, 0)
                    for i in range(min(tile_rows, count - r)):
                        for c in range(valid * code_bytes):
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
