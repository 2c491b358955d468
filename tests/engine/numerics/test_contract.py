"""Contraction: equal to Python's integers, whichever way was chosen."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from support.each import each
from tflq.engine.numerics import products
from tflq.engine.numerics.products import Contraction, PairContraction, accumulators_int32, centre_into, centred_range


def product(x, w):
    return x.astype(object) @ w.astype(object)


CASES = [
    # rows, K, N, x range, w range, float type, whether K is cut
    (7, 27, 5, (-128, 127), (-127, 127), "float32", False),
    (3, 600, 4, (0, 255), (-127, 127), "float32", False),
    (3, 2000, 4, (-255, 255), (-127, 127), "float32", True),
    (5, 3000, 3, (0, 255), (-255, 255), "float32", True),
    (4, 300, 6, (-32768, 32767), (-127, 127), "float64", False),
    (1, 1, 1, (-128, 127), (-128, 127), "float32", False),
    (2, 1, 2, (-32767, 32767), (-32767, 32767), "float64", False),
]


@pytest.mark.parametrize(("rows", "length", "columns", "x_range", "w_range", "real", "cut"), CASES)
def test_random_and_extreme_operands(rows, length, columns, x_range, w_range, real, cut):
    rng = np.random.default_rng(rows * length)
    draws = [
        (
            rng.integers(*x_range, (rows, length), endpoint=True),
            rng.integers(*w_range, (length, columns), endpoint=True),
        ),
        (rng.choice(x_range, (rows, length)), rng.choice(w_range, (length, columns))),
    ]
    for x, w in draws:
        contraction = Contraction.of(w.astype(np.int16), x_range)
        got = contraction(x.astype(contraction.real))
        assert (got.astype(np.int64) == product(x, w)).all()
        assert got.dtype == contraction.accumulator
    assert str(contraction.real) == real
    assert (len(contraction.runs) > 1) == cut


def test_the_bound_is_reached_and_not_passed():
    """2**24 is exact; one more unit has to be cut."""
    weights = np.full((2**10, 1), 128, np.int16)  # 2**10 * 128 * 128 = 2**24
    assert len(Contraction.of(weights, (-128, 128)).runs) == 1
    assert len(Contraction.of(np.vstack([weights, [[1]]]), (-128, 128)).runs) == 2


def test_subset_sums_and_not_only_totals_are_bounded():
    """The total is 0, yet half of the terms add up to 2**25 before the others take it back."""
    half = np.full((2**11, 1), 127, np.int16)
    weights = np.vstack([half, -half])
    contraction = Contraction.of(weights, (0, 128))
    assert len(contraction.runs) > 1
    rows = np.full((1, 2**12), 128) - np.arange(2**12) % 2
    assert contraction(rows.astype(contraction.real)).tolist() == product(rows, weights).tolist()


def test_mixed_signs_over_a_non_negative_range_count_one_sided():
    weights = np.tile(np.array([[127], [-127]], np.int16), (516, 1))
    assert len(Contraction.of(weights, (0, 255)).runs) == 1
    assert len(Contraction.of(weights, (-255, 255)).runs) == 2


def test_no_terms_give_zeros():
    contraction = Contraction.of(np.zeros((0, 3), np.int8), (-128, 127))
    assert contraction(np.zeros((2, 0), contraction.real)).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_into_a_given_array_and_from_a_strided_one():
    rng = np.random.default_rng(3)
    w = rng.integers(-127, 128, (1500, 8))
    wide = rng.integers(-255, 256, (6, 1600))
    contraction = Contraction.of(w, (-255, 255))
    out = np.empty((6, 8), contraction.accumulator)
    assert contraction(wide.astype(contraction.real)[:, 50:1550], out) is out
    assert (out == product(wide[:, 50:1550], w)).all()


@pytest.mark.parametrize(
    ("length", "x_range", "y_range", "runs"),
    [
        (64, (-255, 255), (-255, 255), 1),
        (700, (-255, 255), (-255, 255), 3),
        (1, (-32768, 32767), (-32768, 32767), 1),
        (900, (-32768, 32767), (-32768, 32767), 1),
        (0, (-1, 1), (-1, 1), 1),
    ],
)
def test_pairs(length, x_range, y_range, runs):
    rng = np.random.default_rng(length)
    x = rng.choice(x_range, (2, 1, 3, length))
    y = rng.choice(y_range, (5, length, 4))
    contraction = PairContraction.of(length, x_range, y_range)
    assert len(contraction.runs) == runs
    got = contraction(x.astype(contraction.real), y.astype(contraction.real))
    assert got.dtype == contraction.accumulator
    assert (got.astype(np.int64) == product(x, y)).all()


def test_sums_beyond_32_bits_wrap():
    contraction = Contraction.of(np.full((70000, 1), 32767, np.int32), (0, 1))
    sums = contraction(np.ones((1, 70000), contraction.real))
    true = 70000 * 32767
    assert int(sums[0, 0]) == true
    assert int(accumulators_int32(sums)[0, 0]) == (true + 2**31) % 2**32 - 2**31


def test_centring():
    codes = np.arange(256, dtype=np.uint8)
    out = np.empty(256, np.float32)
    centre_into(codes, 200, out)
    assert (out == np.arange(256) - 200).all()
    assert centred_range((0, 255), 200) == (-200, 55)


@each("weights", [(-128, 127), (-32768, 32767), (0, 1)])
@each("x", [(-128, 127), (0, 255), (-32768, 32767), (-3, 0)])
def test_the_largest_sum_is_that_of_python(weights: tuple[int, int], x: tuple[int, int]) -> None:
    """Float32 weights are exact, but their products and sums need more than its 24 bits."""
    rng = np.random.default_rng(5)
    matrix = rng.integers(*weights, (700, 5), endpoint=True)
    most = max(
        max(
            sum(max(int(w) * x[0], int(w) * x[1], 0) for w in column),
            sum(-min(int(w) * x[0], int(w) * x[1], 0) for w in column),
        )
        for column in matrix.T
    )
    assert products._largest_sum(matrix.astype(np.float32), x) == most


def test_the_largest_sum_takes_little_memory() -> None:
    matrix = np.ones((3000, 1000), np.float32)
    tracemalloc.start()
    try:
        assert products._largest_sum(matrix, (-128, 127)) == 3000 * 128
        assert tracemalloc.get_traced_memory()[1] < 60 << 20
    finally:
        tracemalloc.stop()
