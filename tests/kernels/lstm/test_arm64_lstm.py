"""`tflq/kernels/lstm/arm64_lstm.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.lstm import arm64_lstm as lstm


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(lstm, "litert-opt-arm64")
