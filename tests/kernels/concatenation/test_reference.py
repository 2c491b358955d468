"""`tflq/kernels/concatenation/reference.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.concatenation import reference as concatenation


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(concatenation)
