"""`tflq/kernels/conv_2d/optimized_int16.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.conv_2d import optimized_int16 as conv_2d_int16


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(conv_2d_int16, "litert-opt")
