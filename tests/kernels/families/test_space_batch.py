"""`tflq/kernels/families/space_batch.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import space_batch


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(space_batch, ops=("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"))
