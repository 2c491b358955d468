"""`tflq/kernels/softmax/arm64_softmax_float.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.softmax import arm64_softmax_float as softmax_float


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(softmax_float, "tflite-2.14-opt-arm64")
