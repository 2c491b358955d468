"""`tflq/kernels/reverse_v2/earlier.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.reverse_v2 import earlier as reverse_v2


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(reverse_v2, "tflite-2.14-ref")
