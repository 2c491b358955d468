"""`tflq/kernels/sparse_to_dense/earlier.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.sparse_to_dense import earlier as sparse_to_dense


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(sparse_to_dense, "tflite-2.14-ref")
