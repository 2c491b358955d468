"""`tflq/kernels/families/bits.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import bits


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(bits, ops=("BITWISE_XOR", "RIGHT_SHIFT"))
