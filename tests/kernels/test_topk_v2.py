"""`tflq/kernels/topk_v2.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels import topk_v2


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(topk_v2)
