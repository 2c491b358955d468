"""ARG_MAX and ARG_MIN among NaN: along the last axis four lanes are searched at once, which lets NaN win at times."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from support.each import each
from support.single_op import T, assert_same, build

OPTIONS = {"ARG_MAX": "ArgMaxOptions", "ARG_MIN": "ArgMinOptions"}


def _model(op: str, shape: tuple[int, ...], axis: int) -> bytes:
    out = shape[:axis] + shape[axis + 1 :]
    inputs = [T("float32", shape), T("int32", (), value=axis)]
    return build(op, inputs, [T("int64", out)], (OPTIONS[op], {"output_type": 4}), 2)


@pytest.mark.parametrize("op", OPTIONS)
def test_four_elements_in_every_order(op: str) -> None:
    rows = np.array(list(itertools.product([np.nan, 1, 2, 3], repeat=4)), np.float32)
    assert_same(_model(op, rows.shape, 1), [rows])


@each("op", OPTIONS)
@each("seed", range(40))
def test_nan(op: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 14, rng.integers(1, 4)))
    x = rng.integers(0, 4, shape).astype(np.float32)
    x[rng.random(shape) < rng.choice([0.1, 0.5, 0.9])] = np.nan
    for axis in range(len(shape)):
        assert_same(_model(op, shape, axis), [x], (shape, axis))
