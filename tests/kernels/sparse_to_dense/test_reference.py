"""`tflq/kernels/sparse_to_dense/reference.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.sparse_to_dense import reference as sparse_to_dense


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(sparse_to_dense)
