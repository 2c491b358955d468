"""`tflq/kernels/xnnpack/scaled_sum.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.xnnpack import scaled_sum


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(scaled_sum, "litert-xnnpack", ops=("ADD", "SUB"))
