"""`tflq/kernels/fully_connected/reference_shuffled.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.fully_connected import reference_shuffled as fully_connected_shuffled


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(fully_connected_shuffled)
