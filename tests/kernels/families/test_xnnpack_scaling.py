"""`tflq/kernels/families/xnnpack_scaling.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import xnnpack_scaling as scaling


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(scaling, "litert-xnnpack", ops=("ADD", "MUL", "CONV_2D", "FULLY_CONNECTED"))
