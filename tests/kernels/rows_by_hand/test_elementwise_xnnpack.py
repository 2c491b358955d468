"""`tflq/kernels/rows_by_hand/elementwise_xnnpack.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.rows_by_hand import elementwise_xnnpack as elementwise


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(elementwise, "litert-xnnpack")
