"""`tflq/kernels/rounding/optimized_2_14.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.rounding import optimized_2_14 as rounding_2_14


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(rounding_2_14, "tflite-2.14-opt")
