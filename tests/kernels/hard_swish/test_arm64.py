"""`tflq/kernels/hard_swish/arm64.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.hard_swish import arm64 as hard_swish


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(hard_swish, "litert-opt-arm64")
