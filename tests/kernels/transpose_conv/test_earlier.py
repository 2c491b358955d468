"""`tflq/kernels/transpose_conv/earlier.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.transpose_conv import earlier as transpose_conv


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(transpose_conv, "tflite-2.14-ref")
