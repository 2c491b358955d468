"""`tflq/kernels/softmax/arm64_softmax.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.softmax import arm64_softmax as softmax


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(softmax, "litert-opt-arm64")
