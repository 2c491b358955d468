"""`tflq/kernels/conv_2d/arm64.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.conv_2d import arm64 as conv_2d


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(conv_2d, "litert-opt-arm64")
