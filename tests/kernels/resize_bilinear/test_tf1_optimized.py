"""`tflq/kernels/resize_bilinear/tf1_optimized.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.resize_bilinear import tf1_optimized as resize_bilinear_optimized


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(resize_bilinear_optimized, "tf-1.15-opt")
