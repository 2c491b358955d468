"""`tflq/kernels/conv_3d/optimized_2_14.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.conv_3d import optimized_2_14 as conv_3d_2_14


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(conv_3d_2_14, "tflite-2.14-opt")
