"""`tflq/kernels/rectifiers/micro.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.rectifiers import micro as relu6


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(relu6, "tflm")
