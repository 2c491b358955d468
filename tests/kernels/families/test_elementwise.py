"""`tflq/kernels/families/elementwise.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import elementwise


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(elementwise, ops=("STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_AND"))
