"""`tflq/kernels/mean_sum/tf1_mean_optimized.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.mean_sum import tf1_mean_optimized as mean_optimized


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(mean_optimized, "tf-1.15-opt")
