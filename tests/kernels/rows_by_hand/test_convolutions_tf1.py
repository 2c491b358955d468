"""`tflq/kernels/rows_by_hand/convolutions_tf1.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.rows_by_hand import convolutions_tf1 as convolutions


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(convolutions, "tf-1.15-opt")
