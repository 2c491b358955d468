"""Mistakes in contractions of floats with 8-bit weights, from plain NumPy that quantizes the rows itself."""

from __future__ import annotations

import numpy as np
import pytest

from support.devices import T, dump, explained, names_of, one

DEPTH, UNITS = 48, 12


def _row(x: np.ndarray) -> tuple[np.ndarray, np.float32, int]:
    """Quantize a row asymmetrically: the nearer end of the range gives the zero point."""
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    scale = (high - low) / 255
    by_low, by_high = -128 - low / scale, 127 - high / scale
    chosen = by_low if 128 + abs(low / scale) < 127 + abs(high / scale) else by_high
    zero = int(np.copysign(np.floor(abs(chosen) + 0.5), chosen))
    real = np.float32(zero) + x * np.float32(np.float32(1) / np.float32(scale))
    codes = np.clip(np.trunc(real + np.copysign(np.float32(0.5), real)), -128, 127).astype(np.int64)
    return codes, np.float32(scale), zero


@pytest.mark.parametrize(("kept", "words"), [((0, 1), "zero point of the source ignored"), ((1, 0), "bias missing")])
def test_a_term_that_is_left_out(kept: tuple[int, int], words: str) -> None:
    draw = np.random.default_rng(7)
    w = draw.integers(-127, 128, (UNITS, DEPTH)).astype(np.int8)
    bias = draw.normal(0, 2, UNITS).astype(np.float32)
    model = one(
        "FULLY_CONNECTED",
        [T("float32", (4, DEPTH)), T("int8", (UNITS, DEPTH), 0.01, 0, value=w), T("float32", (UNITS,), value=bias)],
        T("float32", (4, UNITS)),
        ("FullyConnectedOptions", {"asymmetric_quantize_inputs": True}),
    )
    x = draw.normal(0.8, 1.5, (4, DEPTH)).astype(np.float32)
    made = np.zeros((4, UNITS), np.float32) + bias * np.float32(kept[1])
    for r in range(4):
        codes, scale, zero = _row(x[r])
        total = w.astype(np.int64) @ (codes - zero * kept[0])
        made[r] += total.astype(np.float32) * (scale * np.float32(0.01))
    found = explained(model, dump(model, [x], [made]))
    assert found.explanation is not None
    defect = found.explanation.defect
    names = names_of(found) + ([] if defect is None else [defect.name])
    assert any(name.startswith(words) for name in names), names
