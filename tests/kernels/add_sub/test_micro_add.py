"""`tflq/kernels/add_sub/micro_add.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.add_sub import micro_add as add


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(add, "tflm")
