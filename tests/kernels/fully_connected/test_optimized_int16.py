"""`tflq/kernels/fully_connected/optimized_int16.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.fully_connected import optimized_int16 as fully_connected_int16


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(fully_connected_int16, "litert-opt")
