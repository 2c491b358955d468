"""`tflq/kernels/optimized/transpose_conv.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.optimized import transpose_conv


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(transpose_conv, "litert-opt")
