"""`tflq/kernels/fully_connected/arm64.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.fully_connected import arm64 as fully_connected


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(fully_connected, "litert-opt-arm64")
