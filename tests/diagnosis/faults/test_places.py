"""Faults of which only the place is known are stated with it, and clear the arithmetic of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from support.convolved import alone, defect
from support.devices import T, dump, one
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import DefectKind
from tflq.diagnosis.findings import investigate
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name

REF = by_name("litert-ref")


def _noise(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-100, 100, shape).astype(np.int8)


@pytest.mark.slow
def test_channels_beyond_whole_vectors() -> None:
    def tail(k: int, right: list[np.ndarray]) -> np.ndarray:
        value = right[k].copy()
        value[..., 13:] = _noise(value[..., 13:].shape, k)
        return value

    found = defect(alone(tail))
    assert found is not None
    assert (found.kind, found.certainty) == (DefectKind.PLACE, Certainty.LIKELY)
    assert "only the last 3 channels of 16 differ" in found.name
    assert found.place == "channels 13, 14, 15 of 16"


def test_lanes_of_a_vector() -> None:
    def lanes(k: int, right: list[np.ndarray]) -> np.ndarray:
        value = right[k].copy()
        value.reshape(-1)[1::3] = 85
        return value

    found = defect(alone(lanes))
    assert found is not None
    assert "only every third element in memory differs" in found.name


def test_padding_that_was_not_made_at_the_bottom() -> None:
    draw = np.random.default_rng(4)
    weights = draw.integers(-90, 90, (4, 3, 3, 3)).astype(np.int8)
    model = one(
        "CONV_2D",
        [
            T("int8", (1, 8, 8, 3), 0.02, 3),
            T("int8", (4, 3, 3, 3), 0.01, 0, value=weights),
            T("int32", (4,), 0.0002, 0, value=np.zeros(4, np.int32)),
        ],
        T("int8", (1, 8, 8, 4), 0.05, -4),
        ("Conv2DOptions", {"padding": 0, "stride_h": 1, "stride_w": 1}),
    )
    x = draw.integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
    taller = np.concatenate([x, draw.integers(-128, 128, (1, 1, 8, 3)).astype(np.int8)], 1)
    plan = make_plan(model, REF, input_shapes={0: taller.shape})
    made = np.array(run(plan, {0: taller}, keep_all=True).values[3])[:, :8]
    explanation = investigate(model, [dump(model, [x], [made])], REF).explanation
    assert explanation is not None
    assert explanation.defect is not None
    assert "padding at the bottom was not made" in explanation.defect.name
    assert "only the last row (row 7 of 8)" in explanation.defect.place
    assert "of 256 elements are right" in explanation.defect.cleared
    right = np.array(run(make_plan(model, REF), {0: x}, keep_all=True).values[3])
    right[:, -1] ^= 1
    explanation = investigate(model, [dump(model, [x], [right])], REF).explanation
    assert explanation is not None
    assert explanation.defect is None or "padding" not in explanation.defect.name, "one code is no padding's doing"


@pytest.mark.parametrize(
    ("index", "words"),
    [
        pytest.param((..., 5), "channel 5 of 16 holds the constant 0 in all 3 samples", marks=pytest.mark.slow),
        ((slice(None), slice(None), 15), "the last column of 16 holds the constant 0 in all 3 samples"),
    ],
)
def test_a_constant_in_one_place_is_not_computed(index: Any, words: str) -> None:
    """Neither lost weights with an offset, nor padding, is named for it."""

    def blank(k: int, right: Sequence[np.ndarray]) -> np.ndarray:
        value = right[k].copy()
        value[index] = 0
        return value

    found = defect(alone(blank))
    assert found is not None
    assert (found.kind, found.certainty) == (DefectKind.PLACE, Certainty.LIKELY)
    assert found.name.startswith(words)
