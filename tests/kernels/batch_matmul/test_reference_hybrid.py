"""`tflq/kernels/batch_matmul/reference_hybrid.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.batch_matmul import reference_hybrid as batch_matmul_hybrid


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(batch_matmul_hybrid)
