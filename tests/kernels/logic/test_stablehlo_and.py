"""`tflq/kernels/logic/stablehlo_and.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.logic import stablehlo_and


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(stablehlo_and)
