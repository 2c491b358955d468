"""Patches of drawn windows against NumPy's sliding windows over a padded image, for each pair of types in use."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.sweeping import few
from tflq.engine.kernels.geometry.windows import Axis, Window, axis, patches_into

PAIRS = [
    ("int8", "int8"),
    ("int8", "int16"),
    ("int8", "int32"),
    ("int8", "float32"),
    ("uint8", "int16"),
    ("uint8", "int32"),
    ("int16", "int16"),
    ("int16", "float32"),
    ("int16", "int64"),
    ("float32", "float32"),
]


def _drawn(rng: np.random.Generator) -> tuple[Axis, Axis]:
    axes: list[Axis] = []
    while len(axes) < 2:
        padding, size, kernel, stride, dilation = (int(rng.integers(0, high)) for high in (2, 12, 5, 3, 3))
        placed = axis(padding, size + 1, kernel + 1, stride + 1, dilation + 1)
        if placed is not None and placed.out > 0:
            axes.append(placed)
    return axes[0], axes[1]


def _expected(x: np.ndarray, zero_point: int, axes: tuple[Axis, Axis], out: str) -> np.ndarray:
    """Index a centred, padded image by the places of each pixel's taps."""
    reach = max(a.size + (a.kernel * a.dilation) + a.out * a.stride for a in axes)
    padded = np.zeros((x.shape[0], 2 * reach, 2 * reach, x.shape[3]), out)
    padded[:, reach : reach + x.shape[1], reach : reach + x.shape[2]] = x.astype(out) - np.dtype(out).type(zero_point)
    rows, columns = (
        reach - a.before + np.arange(a.out)[:, None] * a.stride + np.arange(a.kernel)[None] * a.dilation for a in axes
    )
    taken = padded[:, rows[:, None, :, None], columns[None, :, None, :]]  # N, out_h, out_w, ky, kx, C
    return taken.reshape(-1, taken.shape[3] * taken.shape[4], x.shape[3])


@pytest.mark.parametrize(("source", "target"), few(PAIRS, PAIRS[1], PAIRS[-1]))
@each("seed", range(12))
def test_patches(source: str, target: str, seed: int) -> None:
    rng = np.random.default_rng([seed, PAIRS.index((source, target))])
    axes, batch, channels = _drawn(rng), int(rng.integers(1, 3)), int(rng.choice([1, 2, 3, 4, 7, 16, 17, 40]))
    x = rng.integers(-100 if source != "uint8" else 0, 100, (batch, axes[0].size, axes[1].size, channels)).astype(
        source
    )
    zero_point = 0 if source == "float32" else int(rng.integers(0, 20))
    expected = _expected(x, zero_point, axes, target)
    first_channel = int(rng.choice([0, 0, channels // 2]))
    first_row = int(rng.integers(0, len(expected)))
    expected = expected[first_row:, :, first_channel:].reshape(len(expected) - first_row, -1)
    out = np.full(expected.shape, 99, target)
    patches_into(x, zero_point, Window.over(*axes), first_row, first_channel, out)
    np.testing.assert_array_equal(out, expected)
