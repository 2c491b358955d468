"""`tflq/kernels/geometry/interior_padding.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.geometry import interior_padding


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(interior_padding, ops=("STABLEHLO_PAD", "STABLEHLO_REDUCE_WINDOW", "DILATE"))
