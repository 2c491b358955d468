"""`tflq/kernels/concatenation/arm64_factored.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.concatenation import arm64_factored as concatenation_factored


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(concatenation_factored, "tflite-2.14-opt-arm64")
