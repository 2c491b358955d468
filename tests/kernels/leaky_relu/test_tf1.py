"""`tflq/kernels/leaky_relu/tf1.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.leaky_relu import tf1 as leaky_relu


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(leaky_relu, "tf-1.15-ref")
