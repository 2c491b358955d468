"""`tflq/kernels/mean_sum/micro_sum.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.mean_sum import micro_sum as sum


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(sum, "tflm")
