"""`tflq/kernels/families/float_limits.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.families import float_limits


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(float_limits, "litert-opt-arm64")
