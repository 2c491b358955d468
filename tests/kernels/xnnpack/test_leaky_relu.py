"""`tflq/kernels/xnnpack/leaky_relu.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.kernel_runs import assert_drawn_models_match
from tflq.errors import UndefinedResultError
from tflq.kernels.xnnpack import leaky_relu


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(leaky_relu, "litert-xnnpack")


@pytest.mark.parametrize("real", [np.nan, np.inf])
def test_a_multiplier_that_is_no_number_is_refused(real: float) -> None:
    with pytest.raises(UndefinedResultError, match="a multiplier of"):
        leaky_relu.fixed(np.float32(real))
