"""`tflq/kernels/families/ordered_sums.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import ordered_sums


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(ordered_sums, ops=("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_3D"))
