"""`tflq/kernels/fully_connected/reference_sparse.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.fully_connected import reference_sparse as fully_connected_sparse


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(fully_connected_sparse)
