"""`tflq/kernels/fully_connected/tf1_optimized.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.fully_connected import tf1_optimized as fully_connected_optimized


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(fully_connected_optimized, "tf-1.15-opt")
