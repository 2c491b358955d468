"""Products of float32 rows and a constant matrix by tiles, every sum in its promised order: as ordered_sums, sooner.

A padded tap adds a product with 0 here where the loops of ordered_sums leave it out. That is the same as long as
weights are finite: sums begin with 0.0, so none is -0.0, and nothing else changes when a zero is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.addresses import Unavailable
from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.filling import Call
from tflq.engine.kernels.geometry.patches import patches_into
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.microkernels import float_tiles, fused_tiles
from tflq.engine.microkernels.kernel import FloatTile
from tflq.engine.numerics.codes import NumberClamp
from tflq.typing import Array

#: Bytes of rows that stay in a core's second-level cache.
_BLOCK_BYTES = 1 << 17
#: Rows below which a product takes no less time by tiles: reading the matrix is what takes it.
_FEWEST_ROWS = 4

#: The function that computes a tile. `_by` replaces it where a tile has no machine code at an address.
tile_into: Any = float_tiles.tile_into


def tiled(
    tile: FloatTile, out: Array, x: Array, window: Window, weights: Array, block: int, bias: Array, clamp: NumberClamp
) -> Call:
    """Return the call of `products_into` by a tile."""
    function, at = fused_tiles.function_of(tile) if tile.fused else (tile_into, float_tiles.address_of(tile))
    products = products_into if function is tile_into else _by(function)
    return products.bound(out, 0, x, window, weights, at, tile.rows, tile.columns, block, bias, *clamp)


@cache
def _by(function: Compiled[..., None]) -> Compiled[..., None]:
    """Return `products_into` with a function in place of machine code at an address."""
    return products_into.bind(tile_into=function)


@dataclass(frozen=True, slots=True, eq=False)
class OrderedProduct:
    """Patches of an image, or rows, times a matrix (K, N), plus a bias, clamped.

    Sums of `block` k each run in order, and are added to each other in order.
    """

    window: Window
    weights: Array  # panels
    block: int

    @classmethod
    def of(cls, matrix: Array, window: Window, rows: int, block: int | None = None) -> OrderedProduct | None:
        """Bind `matrix` (K, N) for the number of `rows`. Return None if loops must do it, or take no longer."""
        if rows < _FEWEST_ROWS or not matrix.size:
            return None
        if not (window.is_pointwise or np.isfinite(matrix).all()):
            return None
        try:
            float_tiles.address_of(float_tiles.choose())
        except Unavailable:
            return None
        panels = float_tiles.pack(matrix, float_tiles.choose())
        return cls(window, panels, min(block or len(matrix), len(matrix)))

    @classmethod
    def of_rows(cls, matrix: Array, rows: int, block: int | None = None) -> OrderedProduct | None:
        """Return the product of `rows` rows: of an image (1, 1, rows, K)."""
        return cls.of(matrix, Window.of_one_tap(1, rows), rows, block)

    def into(self, x: Array, bias: Array, clamp: NumberClamp, out: Array) -> Call:
        """Return the call that fills `out` (R, N) from the image `x` (N, H, W, C), both contiguous; `bias` is (N)."""
        return tiled(float_tiles.choose(), out, x, self.window, self.weights, self.block, bias, clamp)


def _passes(out: Array, first_row: Int, x: Array, window: Window, weights: Array, *rest: Any) -> int:
    """Return the passes of a scalar loop that take about as long, see pieces."""
    return int(out.size * (weights.shape[1] + 16)) >> 3


@writes("out")
@in_pieces(_passes, frees_threads=True, out="r", first_row="r")
@compiled
def products_into(
    out: Array,
    first_row: Int,
    x: Array,
    window: Window,
    weights: Array,
    tile: Int,
    tile_rows: Int,
    tile_columns: Int,
    block: Int,
    biases: Array,
    low: Real,
    high: Real,
) -> None:
    """Fill `out` (R, N) from pixel `first_row` of the output on; sums of `block` k each.

    `tile` is the address of a tile of that many rows and columns.

    Prepare guarantees: `window` lies over `x` (N, H, W, C), and pixels from `first_row` on are its; `weights` are the
    panels of a matrix (taps * C, N); `biases` is (N); `block` is positive.
    """
    rows, width, length = out.shape[0], out.shape[1], weights.shape[1]
    taps = window.kernel_h * window.kernel_w
    is_direct = taps * window.stride_h * window.stride_w == 1 and window.pad_top == 0 and window.pad_left == 0
    size = max(1, _BLOCK_BYTES // (4 * length * tile_rows)) * tile_rows
    patches = np.empty((0 if is_direct else min(size, rows), length), np.float32)
    pixels = x.reshape(-1, x.shape[3])
    edge, added = np.empty((tile_rows, tile_columns), np.float32), np.zeros(tile_columns, np.float32)
    if width < tile_columns:
        for c in range(width):
            added[c] = biases[c]
    for first in range(0, rows, size):
        count = min(size, rows - first)
        if is_direct:
            part = pixels[first_row + first : first_row + first + count]
        else:
            part = patches[:count]
            patches_into(x, 0, window, first_row + first, 0, part)
        for panel in range(weights.shape[0]):
            column = min(panel * tile_columns, width - tile_columns)
            for r in range(0, count, tile_rows):
                left, at = count - r, first + r
                if width >= tile_columns:
                    tile_into(tile, part, r, weights, panel, block, biases, low, high, out, at, column, left)
                else:
                    tile_into(tile, part, r, weights, panel, block, added, low, high, edge, 0, 0, left)
                    for i in range(min(tile_rows, left)):
                        for c in range(width):
                            out[at + i, c] = edge[i, c]
