"""Segments against LiteRT's kernels: empty ones, repeated ones, rows of any shape."""

from __future__ import annotations

import numpy as np
import pytest

from support.parameters import floats
from support.single_op import FULL, T, assert_same, build, draw, tflq
from tflq.errors import ModelError, OperatorFailed

CASES = [
    ((6,), 1, 4),
    ((50, 3), 1, 7),
    ((2, 3, 4), 2, 5),
    ((2, 3, 2, 2, 2), 3, 20),
    ((3,), 0, 2),
    ((0, 3), 1, 4),
    ((5, 2), 1, 1),
]


def values(rng, type_, shape):
    return floats(rng, shape) if type_ == "float32" else draw(rng, T(type_, shape))


@pytest.mark.parametrize("type_", ["float32", "int32"])
@pytest.mark.parametrize("op", ["SUM", "PROD", "MAX", "MIN"])
def test_unsorted(op, type_):
    rng = np.random.default_rng(1)
    for shape, prefix, count in CASES:
        for constant in (True, False):
            ids = rng.integers(-1, count, shape[:prefix]).astype(np.int32)
            number = T("int32", (1,) if constant else (), value=count if constant else None)
            given = [T(type_, shape), T("int32", ids.shape), number]
            model = build(f"UNSORTED_SEGMENT_{op}", given, [T(type_, (count, *shape[prefix:]))])
            run_time = [] if constant else [np.array(count, np.int32)]
            assert_same(model, [values(rng, type_, shape), ids, *run_time], (shape, prefix, count))


@pytest.mark.parametrize("type_", ["float32", "int32"])
def test_sorted(type_):
    rng = np.random.default_rng(2)
    for shape in [(6,), (50, 3), (2, 3, 4), (7, 1, 2, 2, 3)]:
        ids = np.cumsum(np.r_[0, rng.integers(0, 2, shape[0] - 1)]).astype(np.int32)
        model = build(
            "SEGMENT_SUM", [T(type_, shape), T("int32", ids.shape)], [T(type_, (int(ids[-1]) + 1, *shape[1:]))]
        )
        assert_same(model, [values(rng, type_, shape), ids], shape, FULL)


@pytest.mark.parametrize("ids", [[1, 1, 2], [0, 2, 2], [0, 1, 0]])
def test_ids_that_jump_are_refused(ids):
    model = build("SEGMENT_SUM", [T("int32", (3,)), T("int32", (3,))], [T("int32", (3,))])
    with pytest.raises(ModelError, match="ids"):
        tflq(model, [np.zeros(3, np.int32), np.array(ids, np.int32)])


def test_ids_beyond_the_segments_stop_the_run():
    model = build(
        "UNSORTED_SEGMENT_SUM", [T("int32", (3,)), T("int32", (3,)), T("int32", (), value=2)], [T("int32", (2,))]
    )
    with pytest.raises(OperatorFailed, match="index 2"):
        tflq(model, [np.zeros(3, np.int32), np.array([0, 1, 2], np.int32)])
