"""`tflq/kernels/reference/sparse_to_dense.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.reference import sparse_to_dense


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(sparse_to_dense)
