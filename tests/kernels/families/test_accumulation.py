"""`tflq/kernels/families/accumulation.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import accumulation


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(
        accumulation, ops=("UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_MIN")
    )
