"""`tflq/kernels/transpose_conv/arm64_2_14.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.transpose_conv import arm64_2_14 as transpose_conv_2_14


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(transpose_conv_2_14, "litert-opt-arm64")
