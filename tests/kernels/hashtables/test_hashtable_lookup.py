"""`tflq/kernels/hashtables/hashtable_lookup.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.hashtables import hashtable_lookup


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(hashtable_lookup)
