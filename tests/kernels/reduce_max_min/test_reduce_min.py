"""`tflq/kernels/reduce_max_min/reduce_min.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.reduce_max_min import reduce_min


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(reduce_min)
