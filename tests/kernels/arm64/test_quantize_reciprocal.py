"""`tflq/kernels/arm64/quantize_reciprocal.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.arm64 import quantize_reciprocal


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(quantize_reciprocal, "tflite-2.14-ref-arm64")
