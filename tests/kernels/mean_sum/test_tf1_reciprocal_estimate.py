"""`tflq/kernels/mean_sum/tf1_reciprocal_estimate.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.mean_sum import tf1_reciprocal_estimate as reciprocal_estimate


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(reciprocal_estimate, "tf-1.15-opt", ops=("MEAN",))
