"""`tflq/kernels/families/complex_parts.py` against live LiteRT."""

from __future__ import annotations

from support.kernel_runs import assert_drawn_models_match
from tflq.kernels.families import complex_parts


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(complex_parts, ops=("IMAG", "COMPLEX_ABS", "REAL"))
