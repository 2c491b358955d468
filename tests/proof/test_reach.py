"""Sums that can be reached, held against all of them; and large operators."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from support.each import each
from tflq.proof import reach
from tflq.proof.reach import Values, can_be_exact, values_for, with_multiples


@each("weights", [(3,), (2, -4), (5, 0, -3), (6, 10, 15), (0, 0)])
@each("span", [(-2, 3), (0, 4), (1, 3)])
def test_every_sum_and_no_other(weights: tuple[int, ...], span: tuple[int, int]) -> None:
    w = np.array(weights, np.int64)
    choices = product(range(span[0], span[1] + 1), repeat=len(w))
    there = {sum(a * b for a, b in zip(weights, v, strict=True)) for v in choices}
    for target in range(min(there) - 3, max(there) + 4):
        found = values_for(w, Values.between(*span), [(target, target + 1)])
        assert (found is not None) == (target in there), target
        if found is not None:
            values, reached = found
            assert reached == target == (w * values).sum()
            assert span[0] <= values.min() <= values.max() <= span[1]


@each("weights", [(3,), (2, -4), (5, 0, -3), (-6, 10), (0, 0)])
@each("listed", [(-128, -6, -4, -2, 0, 2, 4, 127), (0, 1, 3, 4, 6, 9), (-5,), (2, 7)])
def test_values_with_gaps_reach_no_sum_between(weights: tuple[int, ...], listed: tuple[int, ...]) -> None:
    w, values = np.array(weights, np.int64), Values(np.array(listed, np.int64))
    there = {sum(a * b for a, b in zip(weights, v, strict=True)) for v in product(listed, repeat=len(w))}
    for target in range(min(there) - 3, max(there) + 4):
        found = values_for(w, values, [(target, target + 1)])
        assert (found is not None) == (target in there), target
        if found is not None:
            assert found[1] == target == (w * found[0]).sum()
            assert set(found[0].tolist()) <= set(listed)


def test_a_search_in_part_keeps_to_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "_MOST_BITS", 1 << 20)
    w, values = np.random.default_rng(0).integers(-127, 128, 1152), Values(np.arange(-128, 127, 2))
    found = values_for(w, values, [(4, 5)])
    assert found is not None
    assert (w * found[0]).sum() == found[1] == 4
    assert not np.any(found[0] % 2)
    assert values_for(2 * w, Values(np.arange(-128, 127, 2)), [(3, 4)]) is None


def test_many_weights_are_searched_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "_MOST_BITS", 1 << 22)
    rng = np.random.default_rng(0)
    w = rng.integers(-127, 128, 1152)
    assert not can_be_exact(w, Values.between(-128, 127))
    for target in (0, -1_234_567, 777_777, 3):
        found = values_for(w, Values.between(-128, 127), [(target, target + 1)])
        assert found is not None
        assert (w * found[0]).sum() == found[1] == target


def test_rows_keep_those_with_a_multiple_of_the_divisor() -> None:
    rows = np.array([(low, high) for low in range(-9, 9) for high in range(low + 1, 12)])
    for divisor in range(6):
        multiples = {0} if divisor == 0 else set(range(-30 * divisor, 31 * divisor, divisor))
        expected = [row for row in rows.tolist() if multiples.intersection(range(*row))]
        assert with_multiples(rows, divisor).tolist() == expected
