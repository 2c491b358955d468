"""`tflq/kernels/arg_max_min/arg_min.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.arg_max_min import arg_min


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(arg_min)
