from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from tflq.comparison.inspection.difference import HISTOGRAM_REACH, difference, merge

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_counted_in_lsb(dtype: type) -> None:
    """Held against a count over Python integers."""
    info = np.iinfo(dtype)
    stream = np.random.default_rng(5)
    expected = stream.integers(info.min, info.max, (3, 5, 7), dtype, endpoint=True)
    got = expected.copy()
    places = stream.choice(expected.size, 20, replace=False)
    got.ravel()[places] = stream.integers(info.min, info.max, 20, dtype, endpoint=True)
    found = difference(expected, got)
    pairs = [(int(a), int(b)) for a, b in zip(expected.ravel().tolist(), got.ravel().tolist(), strict=True)]
    deltas = [b - a for a, b in pairs if a != b]
    assert (found.elements, found.differing, found.unit) == (105, len(deltas), "LSB")
    assert (found.largest, found.above, found.below) == (
        max(map(abs, deltas)),
        sum(d > 0 for d in deltas),
        sum(d < 0 for d in deltas),
    )
    assert found.bias == pytest.approx(sum(deltas) / len(deltas))
    assert sum(count for _, count in found.histogram) == len(deltas)
    assert all(abs(distance) <= HISTOGRAM_REACH for distance, _ in found.histogram)
    position = next(i for i, (a, b) in enumerate(pairs) if a != b)
    assert found.first is not None
    assert found.first.index == tuple(int(i) for i in np.unravel_index(position, (3, 5, 7)))
    assert (found.first.expected, found.first.got) == pairs[position]


@pytest.mark.parametrize(("dtype", "code"), [(np.float16, "<eH"), (np.float32, "<fI"), (np.float64, "<dQ")])
def test_floats_are_counted_in_units_in_the_last_place(dtype: type, code: str) -> None:
    one = np.array([1.0], dtype)
    later = np.nextafter(np.nextafter(one, dtype(2)), dtype(2))
    assert (difference(one, later).largest, difference(later, one).below) == (2, 1)
    low, high = np.array([-1.0], dtype), np.array([1.0], dtype)
    bits = struct.unpack("<" + code[2], struct.pack("<" + code[1], 1.0))[0]
    assert difference(low, high).largest == 2 * bits + 1  # 0.0 and -0.0 are two neighbours


def test_signed_zeros_differ_and_nans_do_not() -> None:
    assert difference(np.float32([0.0]), np.float32([-0.0])).largest == 1
    quiet, payload = np.float32([np.nan]), np.array([0x7FC00001], np.uint32).view(np.float32)
    assert difference(quiet, payload).same
    found = difference(np.float32([np.nan, 1]), np.float32([2, 1]))
    assert (found.differing, found.largest, found.histogram) == (1, 0, ())
    assert found.first is not None
    assert math.isnan(found.first.expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "got", "word"),
    [(np.zeros(3, np.int8), np.zeros(3, np.uint8), "type"), (np.zeros((1, 3), np.int8), np.zeros(3, np.int8), "shape")],
)
def test_types_and_shapes_forbid_a_comparison(expected: np.ndarray, got: np.ndarray, word: str) -> None:
    found = difference(expected, got)
    assert not found.same
    assert word in found.problem


def test_strings_and_booleans_and_empty_arrays() -> None:
    a, b = np.array([b"x", b"y"], object), np.array([b"x", b"z"], object)
    assert difference(a, a).same
    found = difference(a, b)
    assert (found.differing, found.unit) == (1, "")
    assert found.first is not None
    assert (found.first.index, found.first.expected, found.first.got) == ((1,), "b'y'", "b'z'")
    assert difference(np.array([True]), np.array([False])).differing == 1
    assert difference(np.empty((0, 2), np.int8), np.empty((0, 2), np.int8)).same
    assert difference(np.array(3, np.int8), np.array(4, np.int8)).first.index == ()  # type: ignore[union-attr]


def test_samples_are_merged() -> None:
    parts = [difference(np.int8([1, 2, 3]), np.int8(g), k) for k, g in enumerate([[1, 2, 3], [1, 3, 3], [1, 2, 0]])]
    found = merge(parts)
    assert (found.elements, found.differing, found.largest, found.above, found.below) == (9, 2, 3, 1, 1)
    assert found.bias == pytest.approx(-1)
    assert found.histogram == ((-3, 1), (1, 1))
    assert found.first is not None
    assert (found.first.sample, found.first.index) == (1, (1,))
