"""int32 sums of centred codes: tiles and contractions give the same, on rows and on patches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.engine.kernels.families import hybrid
from tflq.engine.kernels.families.hybrid import HybridSums


@pytest.mark.parametrize(
    ("rows", "length", "units"), [(1, 1, 1), (5, 33, 40), (70, 64, 192), (9, 700, 3), (300, 17, 20)]
)
def test_sums_are_those_of_integers(rows: int, length: int, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(length)
    weights = rng.integers(-128, 128, (units, length)).astype(np.int8)
    weights[0], codes = -128, rng.integers(-255, 256, (rows, length)).astype(np.int16)
    codes[0] = 255
    want = codes.astype(np.int64) @ weights.astype(np.int64).T
    tiled = HybridSums.of_rows(weights, rows)
    monkeypatch.setattr(hybrid, "summed", lambda *_: ())
    plain = HybridSums.of_rows(weights, rows)
    assert plain.contractions
    assert not plain.tiles
    for sums in (tiled, plain, replace(plain)):
        out = np.empty((rows, units), np.int32)
        sums.into(codes, 0, out)
        np.testing.assert_array_equal(out, want)
        assert sums.shape == (length, units)
    np.testing.assert_array_equal(
        tiled.of_codes(codes.clip(-127, 127).astype(np.int8)),
        codes.clip(-127, 127).astype(np.int64) @ weights.T.astype(np.int64),
    )
