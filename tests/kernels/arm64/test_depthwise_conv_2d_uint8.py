"""`tflq/kernels/arm64/depthwise_conv_2d_uint8.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.arm64 import depthwise_conv_2d_uint8


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(depthwise_conv_2d_uint8, "litert-opt-arm64")
