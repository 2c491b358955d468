"""`tflq/kernels/dequantize/reference.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.dequantize import reference as dequantize


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(dequantize)
