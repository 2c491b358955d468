"""`tflq/kernels/depthwise_conv_2d/optimized_float_2_14.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.depthwise_conv_2d import optimized_float_2_14 as depthwise_conv_2d_float_2_14


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(depthwise_conv_2d_float_2_14, "tflite-2.14-opt")
