"""`tflq/kernels/non_max_suppression/non_max_suppression_v4.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.non_max_suppression import non_max_suppression_v4


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(non_max_suppression_v4)
