"""`tflq/kernels/depthwise_conv_2d/arm64_uint8.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.depthwise_conv_2d import arm64_uint8 as depthwise_conv_2d_uint8


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(depthwise_conv_2d_uint8, "litert-opt-arm64")
