"""`tflq/kernels/pad/tf1.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.pad import tf1 as pad


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(pad, "tf-1.15-ref")
