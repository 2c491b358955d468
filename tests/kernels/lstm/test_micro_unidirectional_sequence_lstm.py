"""`tflq/kernels/lstm/micro_unidirectional_sequence_lstm.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.lstm import micro_unidirectional_sequence_lstm as unidirectional_sequence_lstm


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(unidirectional_sequence_lstm, "tflm")
