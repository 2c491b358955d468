"""One constant of a channel that changed in the device's memory is found by what the channel computes then."""

from __future__ import annotations

import numpy as np
import pytest

from support.devices import T, dump, explained, one, twice_rounded
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import DefectKind
from tflq.diagnosis.findings import Findings
from tflq.model.ir import Model

WEIGHTS = np.random.default_rng(3).integers(-120, 120, (4, 3, 3, 2)).astype(np.int8)
IMAGE = np.random.default_rng(4).integers(-128, 128, (1, 6, 6, 2)).astype(np.int8)


def convolution() -> Model:
    """An output scale of 1024 times the product of the others."""
    weights = T("int8", WEIGHTS.shape, 0.5, 0, value=WEIGHTS)
    bias = T("int32", (4,), 0.25, 0, value=np.arange(4, dtype=np.int32) * 100)
    options = {"padding": 1, "stride_h": 1, "stride_w": 1}
    return one(
        "CONV_2D",
        [T("int8", (1, 6, 6, 2), 0.5, 0), weights, bias],
        T("int8", (1, 4, 4, 4), 256.0, 0),
        ("Conv2DOptions", options),
    )


def computed(weights: np.ndarray) -> np.ndarray:
    """The sums of products in plain Python; scale 1/1024."""
    made = np.zeros((1, 4, 4, 4), np.int64)
    for y in range(4):
        for x in range(4):
            window = IMAGE[0, y : y + 3, x : x + 3].astype(np.int64)
            made[0, y, x] = [(window * w).sum() + 100 * k for k, w in enumerate(weights.astype(np.int64))]
    codes = [twice_rounded(int(total), 1 / 1024) for total in made.reshape(-1)]
    return np.clip(codes, -128, 127).astype(np.int8).reshape(made.shape)


def found(weights: np.ndarray) -> Findings:
    return explained(convolution(), dump(convolution(), [IMAGE], [computed(weights)]))


def test_the_right_weights_give_the_right_results() -> None:
    assert found(WEIGHTS).first is None


@pytest.mark.parametrize(
    ("place", "bits", "said"),
    [(slice(41, 42), 0x40, "bit 6 of the weight at byte 41"), (slice(48, 54), None, "hold 0x00")],
)
def test_a_changed_weight_is_found(place: slice, bits: int | None, said: str) -> None:
    weights = WEIGHTS.copy()
    flat = weights.reshape(-1).view(np.uint8)
    flat[place] = 0 if bits is None else flat[place] ^ np.uint8(bits)
    explanation = found(weights).explanation
    assert explanation is not None
    assert explanation.defect is not None
    assert explanation.defect.kind == DefectKind.CONSTANT, explanation.defect.name
    assert said in explanation.defect.name
    assert "channel 2" in explanation.defect.place
    assert explanation.certainty != Certainty.NONE
