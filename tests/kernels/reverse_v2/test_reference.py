"""`tflq/kernels/reverse_v2/reference.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.reverse_v2 import reference as reverse_v2


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(reverse_v2)
