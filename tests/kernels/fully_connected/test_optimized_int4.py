"""`tflq/kernels/fully_connected/optimized_int4.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.fully_connected import optimized_int4 as fully_connected_int4


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(fully_connected_int4, "litert-opt")
