"""`tflq/kernels/families/quantized_unary.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import quantized_unary


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(quantized_unary, ops=("ABS", "SQRT", "LOG"))
