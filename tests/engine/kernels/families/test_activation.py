"""`tflq/engine/kernels/families/activation.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.engine.kernels.families import activation
from tflq.errors import UndefinedResultError


@pytest.mark.parametrize("scale", [1e-38, 6.0 / 2**31])
def test_a_limit_whose_code_leaves_int32_is_refused(scale: float) -> None:
    with (
        np.errstate(over="ignore"),
        pytest.raises(UndefinedResultError, match=r"the limit 6 over the scale .* leaves int32"),
    ):
        activation.quantized_limit(6.0, np.float32(scale), 0)
    assert activation.quantized_limit(6.0, np.float32(12.0 / 2**31), 3) == 2**30 + 3
