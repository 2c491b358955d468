"""`tflq/kernels/stablehlo_arithmetic/stablehlo_add.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.stablehlo_arithmetic import stablehlo_add


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(stablehlo_add)
