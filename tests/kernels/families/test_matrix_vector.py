"""`tflq/kernels/families/matrix_vector.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.families import matrix_vector


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(matrix_vector, "litert-opt-arm64", ops=("CONV_2D", "LSTM", "FULLY_CONNECTED"))
