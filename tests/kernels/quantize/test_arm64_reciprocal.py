"""`tflq/kernels/quantize/arm64_reciprocal.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.quantize import arm64_reciprocal as quantize_reciprocal


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(quantize_reciprocal, "tflite-2.14-ref-arm64")
