"""`tflq/kernels/depthwise_conv_2d/optimized_float.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.depthwise_conv_2d import optimized_float as depthwise_conv_2d_float


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(depthwise_conv_2d_float, "litert-opt")
