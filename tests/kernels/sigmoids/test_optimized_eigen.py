"""`tflq/kernels/sigmoids/optimized_eigen.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.sigmoids import optimized_eigen as eigen_functions


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(eigen_functions, "litert-opt")
