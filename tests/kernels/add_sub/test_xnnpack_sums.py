"""`tflq/kernels/add_sub/xnnpack_sums.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.add_sub import xnnpack_sums as scaled_sum


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(scaled_sum, "litert-xnnpack", ops=("ADD", "SUB"))
