"""Integer matrix products in tiles, from codes to codes.

Tiles of sums of products, with all sums in registers.

From codes to codes by micro-kernels: rows are packed block by block, and every block is multiplied with all panels
of weights.

`product_into` calls a tile by its address, so that there is one for all kernels, and a packer, which `driver` inserts.
Codes are given as their bytes. A block's packed rows stay in a core's second-level cache, a panel and the sums in the
first.

Weights and constants in the layout of micro-kernels, computed once when a product is bound.

A row's values are given as code - `shift`, weights as centred + `zero`. Both leave two terms in a sum: one of the
column, which is added to its bias, and one of the row. With l = x + p and r = w + q for centred x and w, sum of x * w =
sum of l * r - q * sum of l - p * sum of r + K * p * q, all modulo 2**32.

Rows of codes times one constant matrix and through an output pipeline, bound to the best micro-kernel for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, compiled, writes
from tflq.engine.jit.images import release
from tflq.engine.jit.native import Unavailable
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.microkernels import kernel as called
from tflq.engine.microkernels.kernel import Arguments, Tile, TileKernel, VectorForm, available, through
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.engine.numerics.stages import OutputPipeline, VectorScaling
from tflq.typing import Array


def definition(kernel: TileKernel) -> Callable[..., None]:
    """Return the definition of a tile on scalars, with the parameters of `tile_into` from `rows` on."""
    tile = kernel.tile
    group, columns = tile.form.group, tile.columns

    def define(
        rows: Array,
        row: Int,
        weights: Array,
        panel: Int,
        constants: Array,
        terms: Array,
        zero_point: Int,
        low: Int,
        high: Int,
        out: Array,
        out_row: Int,
        out_byte: Int,
    ) -> None:
        codes = out.view(kernel.code)
        out_column = out_byte // codes.itemsize
        matrix = weights[panel].reshape(-1, columns, group).transpose(0, 2, 1).reshape(-1, columns).astype(np.int64)
        biases, *words = unpack(kernel.constants, columns, constants[panel])
        for r in range(tile.rows):
            sums = biases + rows[row + r, : len(matrix)].astype(np.int64) @ matrix
            if not tile.form.is_wide:
                sums = sums + np.int64(terms[row + r])
            for c in range(columns):
                value = through(kernel.steps, wrap_int32(sums[c]), (w[c] for w in words))
                codes[out_row + r, out_column + c] = clamp(wrap_int32(value + zero_point), low, high)

    return define


def unpack(kinds: Sequence[str], columns: int, words: Array) -> list[Array]:
    """Return biases and steps' constants of `columns` columns, one array each, of these types."""
    data, at, arrays = words.tobytes(), 0, []
    for kind in map(np.dtype, kinds):
        arrays.append(np.frombuffer(data, kind, columns, at))
        at += kind.itemsize * columns
    return arrays


def _operands(at: Arguments) -> tuple[Any, ...]:
    from tflq.engine.microkernels.emission import Operands

    row, panel = at.number("row"), at.number("panel")
    return Operands(
        rows=at.address("rows", row),
        row_step=at.step("rows", 0),
        weights=at.address("weights", panel),
        steps=at.size("weights", 1),
        constants=at.address("constants", panel),
        terms=at.address("terms", row),
        zero_point=at.code("zero_point"),
        low=at.code("low"),
        high=at.code("high"),
        codes=at.address("out", at.number("out_row"), at.number("out_byte")),
        code_step=at.step("out", 0),
    )


@called.by_address(_operands, definition)
@compiled
def tile_into(
    at: Int,
    rows: Array,
    row: Int,
    weights: Array,
    panel: Int,
    constants: Array,
    terms: Array,
    zero_point: Int,
    low: Int,
    high: Int,
    out: Array,
    out_row: Int,
    out_byte: Int,
) -> None:
    """Compute codes[out_row + r, first + c] = clamp(scale(bias[c] + terms[row + r] + sum of products) + zero point) by
    the tile at an address.

    `out` holds the bytes of `codes`, whose column `first` begins at `out_byte`. `rows` (R, steps * group) holds a row's
    values in groups, `weights` (panels, steps, columns * group) a column's, `constants` (panels, words) the layout of
    packing.constants, `terms` one int32 a row. All are contiguous along their last axis.

    The caller guarantees: `at` is that of a kernel for these operands; rows, panel and the whole tile lie inside their
    arrays; there is one step at least.
    """
    called.definition_at(at)(rows, row, weights, panel, constants, terms, zero_point, low, high, out, out_row, out_byte)


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


#: Elements of weights that are widened at a time.
_BLOCK = 1 << 17
#: Bytes of a line of the cache, the widest register: loads that cross its end take twice as long.
_LINE = 64


@dataclass(frozen=True, slots=True)
class Offsets:
    """The numbers added to centred values so that they fit the types of a form."""

    left: int  # p, to values of a row
    right: int  # q, to weights


def packing_offsets(form: VectorForm, weights: Array, codes: np.dtype[np.integer], zero_point: int) -> Offsets | None:
    """Return the offsets for centred `weights` and rows of codes with that zero point; None if they do not fit."""
    low, high = (int(weights.min()), int(weights.max())) if weights.size else (0, 0)
    right = np.iinfo(form.right)
    shift = 0 if low >= right.min and high <= right.max else int(right.min) - low
    if high + shift > right.max:
        return None
    if form.is_wide:
        fits = codes.itemsize == 1 or (codes == np.int16 and zero_point == 0)
        return Offsets(0, 0) if fits and shift == 0 else None
    if codes.itemsize > 1:
        return None
    return Offsets(zero_point + int(np.iinfo(form.left).min) - int(np.iinfo(codes).min), shift)


def panels(weights: Array, tile: Tile, zero: int) -> Array:
    """Return centred weights (K, N), plus `zero`, as (panels, steps, columns * group), filled up with zeros.

    The last panel has the last columns, some of which the one before it may have, too.
    """
    group, columns = tile.form.group, tile.columns
    length, width = weights.shape
    steps, count = -(-length // group), -(-width // columns)
    value = np.dtype(tile.form.right)
    whole = np.dtype(f"u{group * value.itemsize}")  # a group is moved at once
    made = aligned_empty((count, steps, columns), whole)
    blocks = [(block.start // columns, block) for block in column_blocks(weights, columns)]
    for first, block in (*blocks, (count - 1, slice(max(0, width - columns), width))):
        panels = -(-(block.stop - block.start) // columns)
        filled = np.zeros((panels * columns, steps * group), value)
        part = weights[:, block].T
        filled[: len(part), :length] = part.astype(np.int32) + zero if zero else part
        made[first : first + panels] = filled.view(whole).reshape(panels, columns, steps).transpose(0, 2, 1)
        release(part)
    return made.view(value)


def first_columns(tile: Tile, width: int) -> Array:
    """Return the first column of each panel of a matrix with `width` columns."""
    starts: Array = np.minimum(np.arange(-(-width // tile.columns)) * tile.columns, max(0, width - tile.columns))
    return starts


def column_terms(weights: Array, subtracted: Offsets) -> Array:
    """Return int64 terms of the columns, for the bias: all terms of the offsets except the rows' own."""
    sums = weights.sum(axis=0, dtype=np.int64) + len(weights) * subtracted.right
    terms: Array = len(weights) * subtracted.left * subtracted.right - subtracted.left * sums
    return terms


def largest_column(weights: Array) -> int:
    """Return the largest sum of magnitudes of a column."""
    wide = np.int16 if weights.itemsize == 1 else np.int32  # which holds the magnitude of the least number, too
    sums = (np.abs(weights[:, block].astype(wide)).sum(0, np.int64) for block in column_blocks(weights, 1))
    return int(max(part.max() for part in sums))


def column_blocks(weights: Array, columns: int) -> Iterator[slice]:
    """Yield neighbouring columns, a multiple of `columns` at a time, whose elements stay within a bound if they can."""
    length, width = weights.shape
    step = columns * max(1, _BLOCK // max(1, length * columns))
    for first in range(0, width, step):
        yield slice(first, min(first + step, width))


def align(values: Array) -> Array:
    """Return a copy whose memory begins with a line of the cache."""
    made = aligned_empty(values.shape, values.dtype)
    made[...] = values
    return made


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array without content whose memory begins with a line of the cache."""
    size = prod(shape) * dtype.itemsize
    memory = np.empty(size + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def packing_constants(tile: Tile, bias: Array, scaling: Sequence[Array], width: int) -> Array:
    """Return int32 words (panels, words): a panel's biases, then its columns' constants, of length 1 or `width`."""
    at = first_columns(tile, width)[:, None] + np.arange(tile.columns)
    parts = []
    for values in (bias.astype(np.int64).astype(np.int32), *scaling):
        filled = np.zeros(max(width, tile.columns), values.dtype)
        filled[:width] = values
        parts.append(filled[at].view(np.int32))
    return align(np.concatenate(parts, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class CodeOperand:
    """The source of a product's rows: codes of a type with a zero point, and how they become rows."""

    dtype: np.dtype[Any]
    zero_point: int
    packer: Compiled[..., None]  # see driving.pack_rows

    @property
    def largest(self) -> int:
        """The largest magnitude of a code less the zero point."""
        info = np.iinfo(self.dtype)
        return max(abs(int(info.min) - self.zero_point), abs(int(info.max) - self.zero_point))


@dataclass(frozen=True, slots=True, eq=False)
class IntegerProduct:
    """A bound product: call it with (out, first_row, codes, geometry), see driving.product_into."""

    kernel: TileKernel
    run: Compiled[..., None]
    constants: tuple[Any, ...]  # of the run, from `length` on
    shape: tuple[int, int]  # (K, N)

    def __call__(self, out: Array, first_row: int, codes: Array, geometry: Any) -> None:
        """Fill the product's columns of `out` (R, C) from row `first_row` of the codes on."""
        self.run(out.view(np.uint8), first_row, self._read(codes), geometry, *self.constants)

    def into(self, out: Array, first_row: int, codes: Array, geometry: Any) -> Callable[[], None]:
        """Bind the product's arguments; return the call."""
        return self.run.bound(out.view(np.uint8), first_row, self._read(codes), geometry, *self.constants)

    def _read(self, codes: Array) -> Array:
        """Return codes as the packer reads them: modulo 2**8 if packed values have 8 bits, see `_bind`."""
        return codes if self.kernel.tile.form.is_wide else codes.view(np.uint8)


def fuse(
    codes: CodeOperand,
    matrices: Sequence[Array],
    rows: int,
    bias: Array,
    pipeline: OutputPipeline,
    form: VectorForm | None = None,
) -> tuple[IntegerProduct, ...]:
    """Prepare products with centred `matrices` side by side, with all of `pipeline` done on sums in registers.

    Matrices are (K, N) of equal shapes, K and N at least 1, `bias` is as long as all columns together. `rows` is the
    number of rows, as far as it decides which kernel is best. Return no product if the result would not be exact, or if
    this processor has no form for it; `form` is the best of the processor that takes a matrix, unless it is given.
    """
    limits = (int(pipeline.zero_point), *pipeline.clamp)
    products: list[IntegerProduct] = []
    for matrix in matrices:
        at = slice(len(products) * matrix.shape[1], (len(products) + 1) * matrix.shape[1])
        largest = _largest_sum(codes, matrix) + int(np.abs(bias[at].astype(np.int64)).max())
        scaling = pipeline.stage.scaling(largest)
        if scaling is None:
            return ()
        bound = _bind(codes, matrix, at, rows, bias[at], scaling, limits, pipeline.dtype.name, form)
        if bound is None:
            return ()
        products.append(bound)
    return tuple(products)


def summed(
    codes: CodeOperand, matrices: Sequence[Array], rows: int, accumulator: np.dtype[Any], form: VectorForm | None = None
) -> tuple[IntegerProduct, ...]:
    """Prepare products that give int32 sums; return none if a wider accumulator could hold more than int32."""
    products: list[IntegerProduct] = []
    for matrix in matrices:
        at = slice(len(products) * matrix.shape[1], (len(products) + 1) * matrix.shape[1])
        if accumulator != np.int32 and _largest_sum(codes, matrix) >= 2**31:
            return ()
        bias = np.zeros(matrix.shape[1], np.int32)
        bound = _bind(codes, matrix, at, rows, bias, VectorScaling((), ()), (0, -(2**31), 2**31 - 1), "int32", form)
        if bound is None:
            return ()
        products.append(bound)
    return tuple(products)


def _largest_sum(codes: CodeOperand, matrix: Array) -> int:
    """Return the largest magnitude that a sum of products can have."""
    return largest_column(matrix) * codes.largest


def _bind(
    codes: CodeOperand,
    matrix: Array,
    columns: slice,
    rows: int,
    bias: Array,
    scaling: VectorScaling,
    limits: tuple[int, int, int],
    code: str,
    form: VectorForm | None,
) -> IntegerProduct | None:
    fitting = _fitting(codes, matrix, form)
    if fitting is None:
        return None
    form, offsets = fitting
    length, width = matrix.shape
    terms = column_terms(matrix, offsets)
    release(matrix)  # the panels hold the weights from here on
    tile = form.tile(width)
    kernel = TileKernel(tile if rows > 1 else Tile(form, 1, tile.vectors), scaling.steps, code)
    own = tuple(values if len(values) == 1 else values[columns] for values in scaling.constants)
    try:
        at = tile_into.address(kernel)
    except Unavailable:
        return None
    shift, packed = codes.zero_point - offsets.left, panels(matrix, tile, offsets.right)
    filled = packed.shape[1] * form.group
    constants = (
        length,
        shift if form.is_wide else shift % (1 << 8),
        offsets.left if form.is_wide else offsets.left % (1 << 8),
        -offsets.right,
        at,
        kernel.tile.rows,
        tile.columns,
        np.dtype(code).itemsize,
        filled,
        rows_at_once(kernel.tile.rows, filled),
        packed,
        packing_constants(tile, bias + terms, own, width),
        *limits,
        columns.start,
        width,
    )
    return IntegerProduct(kernel, driver(codes.packer, form.left), constants, (length, width))


def _fitting(codes: CodeOperand, matrix: Array, form: VectorForm | None) -> tuple[VectorForm, Offsets] | None:
    """Return the best form whose operands hold `codes` and `matrix`: a wide one if weights need more than 8 bits."""
    for candidate in (form,) if form else available(codes.dtype.itemsize > 1):
        offsets = packing_offsets(candidate, matrix, codes.dtype, codes.zero_point)
        if offsets is not None:
            return candidate, offsets
    return None
