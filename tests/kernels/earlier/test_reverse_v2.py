"""`tflq/kernels/earlier/reverse_v2.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.earlier import reverse_v2


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(reverse_v2, "tflite-2.14-ref")
