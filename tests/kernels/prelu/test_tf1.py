"""`tflq/kernels/prelu/tf1.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.prelu import tf1 as prelu


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(prelu, "tf-1.15-ref")
