"""`tflq/kernels/depthwise_conv_2d/optimized.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.depthwise_conv_2d import optimized as depthwise_conv_2d


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(depthwise_conv_2d, "litert-opt")
