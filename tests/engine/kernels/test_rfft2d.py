"""RFFT2D against LiteRT's kernel: every way the transform takes, by size."""

from __future__ import annotations

import numpy as np
import pytest

from support.single_op import T, assert_same, build, tflq
from tflq.errors import ModelError

SIZES = [
    (1, 1),
    (8, 1),
    (1, 2),
    (2, 2),
    (4, 4),
    (1, 64),
    (16, 16),
    (32, 32),
    (64, 64),
    (16, 128),
    (2, 512),
    (1, 2048),
    (64, 1024),
    (1024, 4),
]


def spectrum(shape, height, width, value=True):
    length = T("int32", (2,), value=[height, width] if value else None)
    out = T("complex64", (*shape[:-2], height, width // 2 + 1))
    return build("RFFT2D", [T("float32", shape), length], [out], ("Rfft2dOptions", {}))


@pytest.mark.slow
@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("size", SIZES)
def test_rfft2d(size):
    """Images cut and padded, of any values, whole numbers and single points: zeros keep their signs."""
    height, width = size
    rng = np.random.default_rng(height * width)
    for kind in range(6):
        shape = (2, max(1, height + int(rng.integers(-2, 2))), max(1, width + int(rng.integers(-2, 2))))
        x = rng.normal(size=shape).astype(np.float32)
        if kind % 3 == 1:
            x = np.round(x)
        elif kind % 3 == 2:
            x[:] = 0
            x[:, shape[1] // 2, shape[2] // 2] = -1
        assert_same(spectrum(shape, height, width), [x], (kind, shape))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 8), (1, 2, 1, 3, 4, 8), (0, 4, 8)])
def test_rank_and_length_at_run_time(shape):
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    assert_same(spectrum(shape, 4, 16), [x])
    if x.size:
        assert_same(spectrum(shape, 4, 16, value=False), [x, np.array([4, 16], np.int32)])


def test_lengths_that_are_no_powers_of_two_are_refused():
    with pytest.raises(ModelError, match="fft_length"):
        tflq(spectrum((4, 6), 4, 6), [np.zeros((4, 6), np.float32)])
