"""`tflq/kernels/families/box_selection.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import box_selection


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(
        box_selection, ops=("TFLite_Detection_PostProcess", "NON_MAX_SUPPRESSION_V5", "NON_MAX_SUPPRESSION_V4")
    )
