"""`tflq/kernels/rows_by_hand/recurrent_2_14.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.rows_by_hand import recurrent_2_14 as recurrent


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(recurrent, "tflite-2.14-ref")
