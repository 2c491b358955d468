"""`tflq/kernels/hard_swish/reference.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.hard_swish import reference as hard_swish


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(hard_swish)
