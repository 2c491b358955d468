"""`tflq/kernels/transpose_conv/xnnpack_hybrid.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.transpose_conv import xnnpack_hybrid as transpose_conv_hybrid


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(transpose_conv_hybrid, "litert-xnnpack")
