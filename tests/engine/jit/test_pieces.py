"""Blocks, pieces of calls, and products by rows."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from support.each import each
from tflq.engine.jit import pieces
from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import blocks, in_pieces, in_steps, matmul, ranges
from tflq.typing import Array


@each("extents", [(1,), (7,), (0,), (3, 4), (1, 9, 2), (5, 1, 3), (2, 0, 3), (2, 3, 4, 5)])
@each("most", [0, 1, 2, 5, 11, 60, 1000])
def test_blocks_are_the_whole_in_order_and_contiguous(extents: tuple[int, ...], most: int) -> None:
    array = np.arange(prod(extents)).reshape(extents)
    for most in (0, 1, 2, 5, 11, 60, 1000):
        parts = [array[block] for block in blocks(extents, most)]
        assert [v for part in parts for v in part.ravel()] == list(range(array.size)), most
        assert all(part.flags.c_contiguous and 0 < part.size <= max(1, most) for part in parts if array.size), most


@pytest.mark.parametrize("most", [1, 4, 5, 11, 100])
def test_the_innermost_axis_is_cut_at_multiples(most: int) -> None:
    starts = [block[-1].start for block in blocks((2, 13), most, 4)]
    assert all(start % 4 == 0 for start in starts)


def test_ranges_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LONGEST", 12)
    assert list(ranges(10, 4)) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert list(ranges(2, 100)) == [(0, 1), (1, 2)]


@in_pieces(2, x="nr", out="n", scale="r", first="r", begin="r")
@compiled
def _weighted(x: Array, scale: Array, first: Int, begin: bool, out: Array) -> None:
    for n in range(x.shape[0]):
        for r in range(x.shape[1]):
            term = x[n, r] * scale[r] + (first + r)
            out[n] = term if begin and r == 0 else out[n] + term


@pytest.mark.parametrize("longest", [1, 6, 14, 40, 10**6])
def test_arrays_are_cut_numbers_advance_and_flags_hold_once(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LONGEST", longest)
    x, scale = np.arange(35).reshape(5, 7), np.arange(7) + 2
    out = np.full(5, 1000)
    _weighted(x, scale, 3, True, out)
    assert out.tolist() == (x * scale + 3 + np.arange(7)).sum(axis=1).tolist()


@in_steps(lambda x: x.size)
@compiled
def _twice(x: Array) -> None:
    for _ in range(2):
        _once(x)


@in_pieces(x="r")
@compiled
def _once(x: Array) -> None:
    for i in range(x.size):
        x[i] += 1


@pytest.mark.parametrize("longest", [3, 1000])
def test_long_steps_are_made_one_by_one(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LONGEST", longest)
    x = np.zeros(10, np.int64)
    _twice(x)
    assert x.tolist() == [2] * 10


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((2, 3, 0), (2, 0, 4)), ((5, 3, 4), (4, 2))]
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_products_by_rows(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, shape).astype(dtype) for shape in shapes)
    got = matmul(x, y)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.einsum("...rk,...kn->...rn", x, y))
