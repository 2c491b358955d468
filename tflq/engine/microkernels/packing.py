"""Weights and constants in the layout of micro-kernels, computed once when a product is bound.

A row's values are given as code - `shift`, weights as centred + `zero`. Both leave two terms in a sum: one of the
column, which is added to its bias, and one of the row. With l = x + p and r = w + q for centred x and w, sum of x * w =
sum of l * r - q * sum of l - p * sum of r + K * p * q, all modulo 2**32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.mapped import release
from tflq.engine.microkernels.forms import Form, Tile
from tflq.typing import Array

#: Elements of weights that are widened at a time.
_BLOCK = 1 << 17
#: Bytes of a line of the cache, the widest register: loads that cross its end take twice as long.
_LINE = 64


@dataclass(frozen=True, slots=True)
class Offsets:
    """The numbers added to centred values so that they fit the types of a form."""

    left: int  # p, to values of a row
    right: int  # q, to weights


def offsets(form: Form, weights: Array, codes: np.dtype[np.integer], zero_point: int) -> Offsets | None:
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


def constants(tile: Tile, bias: Array, scaling: Sequence[Array], width: int) -> Array:
    """Return int32 words (panels, words): a panel's biases, then its columns' constants, of length 1 or `width`."""
    at = first_columns(tile, width)[:, None] + np.arange(tile.columns)
    parts = []
    for values in (bias.astype(np.int64).astype(np.int32), *scaling):
        filled = np.zeros(max(width, tile.columns), values.dtype)
        filled[:width] = values
        parts.append(filled[at].view(np.int32))
    return align(np.concatenate(parts, axis=1))
