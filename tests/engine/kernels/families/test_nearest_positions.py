"""Positions of resized pixels: exact, and computed for whole axes at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from support.each import each
from tflq.engine.kernels.families import positions as nearest_positions
from tflq.engine.kernels.families.positions import ROUNDED, positions
from tflq.engine.kernels.resizing import nearest

HALF = Fraction(1, 2)
ROUND: Mapping[str, Callable[[Fraction], int]] = {
    "rounded down": math.floor,
    "rounded half up": lambda x: math.floor(x + HALF),
    "rounded half down": lambda x: math.ceil(x - HALF),
    "rounded half to even": round,
    "rounded up": math.ceil,
}
PLACE: Mapping[str, Callable[[int, int, int], Fraction]] = {
    "asymmetric": lambda i, size, count: Fraction(i * size, count),
    "centres": lambda i, size, count: (i + HALF) * Fraction(size, count),
    "half_pixel": lambda i, size, count: (i + HALF) * Fraction(size, count) - HALF,
    "corners": lambda i, size, count: Fraction(i * (size - 1), max(count - 1, 1)),
}


@each("rounding", ROUND)
@each("place", PLACE)
def test_positions_are_the_exact_fractions_rounded(place: str, rounding: str) -> None:
    for size, count in ((1, 1), (1, 5), (5, 1), (3, 4), (4, 3), (7, 8), (8, 16), (16, 8), (9, 33)):
        found = positions(getattr(nearest_positions, place), ROUNDED[rounding], size, count)
        exact = [ROUND[rounding](PLACE[place](i, size, count)) for i in range(count)]
        assert found.tolist() == [min(max(i, 0), size - 1) for i in exact], (size, count)


def test_corners_of_a_long_axis_are_found_without_a_loop() -> None:
    found = nearest(3, 3_000_001, align=True, half=False)
    assert np.array_equal(found[[0, 749_999, 750_001, 2_250_001, -1]], [0, 0, 1, 2, 2])
