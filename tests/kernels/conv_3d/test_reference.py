"""`tflq/kernels/conv_3d/reference.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.conv_3d import reference as conv_3d


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(conv_3d)
