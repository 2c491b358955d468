"""`tflq/kernels/families/movement.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import movement


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(movement, ops=("RESHAPE", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH"))
