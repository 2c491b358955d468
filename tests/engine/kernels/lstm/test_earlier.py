"""LSTM cells on int8 up to 2.11 and from 2.12 on; expected codes are those of the released packages, read live."""

from __future__ import annotations

import numpy as np
import pytest

from support import suites
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES

UP_TO_2_11 = [118, 22, -47, -95, 122, 113, -14, 112, 86, 96, -123, -28, 102, 45, -125, -67, 33, -115, 59, 64]
FROM_2_12 = [115, 20, -48, -95, 120, 112, -16, 110, 84, 93, -126, -33, 92, 59, -127, -67, 27, -117, 58, 60]


@pytest.mark.skipif(bool(suites.missing()), reason="no shared test material")
@pytest.mark.parametrize(
    ("profile", "expected"),
    [("tflite-2.7-ref", UP_TO_2_11), ("tflite-2.11-ref", UP_TO_2_11), ("tflite-2.12-ref", FROM_2_12)],
)
def test_the_hidden_states_zero_point_was_subtracted(profile: str, expected: list[int]) -> None:
    model = load(suites.SHARED / "suites/real/models/coral/keras_lstm_mnist_ptq.tflite")
    graph = model.subgraphs[0]
    codes = ((np.arange(784) * 37 + 11) % 256).astype(np.uint8).reshape(1, 28, 28)
    trace = run(make_plan(model, PROFILES[profile]), {graph.inputs[0]: codes}, keep_all=True)
    (sequence,) = graph.operators[1].outputs
    assert trace.values[sequence][0, -1].tolist() == expected
