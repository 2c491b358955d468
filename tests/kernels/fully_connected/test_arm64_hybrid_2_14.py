"""`tflq/kernels/fully_connected/arm64_hybrid_2_14.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.fully_connected import arm64_hybrid_2_14 as fully_connected_hybrid_2_14


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(fully_connected_hybrid_2_14, "tflite-2.14-opt-arm64")
