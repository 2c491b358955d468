"""`tflq/kernels/arg_max_min/earlier.py` against recordings."""

from __future__ import annotations

from support.kernel_runs import assert_recorded_models_match
from tflq.kernels.arg_max_min import earlier as extremum


def test_recorded_models_have_the_bits_of_the_runtime() -> None:
    assert_recorded_models_match(extremum, "tflite-2.14-ref")
