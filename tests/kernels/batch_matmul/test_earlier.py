"""`tflq/kernels/batch_matmul/earlier.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.batch_matmul import earlier as batch_matmul


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(batch_matmul, "tflite-2.14-ref")
