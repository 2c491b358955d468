"""`tflq/engine/kernels/range.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.kernel_runs import assert_drawn_models_match
from support.single_op import T, allocate, build
from tflq.engine.kernels import range
from tflq.errors import ModelError


def test_drawn_models_have_the_bits_of_the_runtime() -> None:
    assert_drawn_models_match(range)


@pytest.mark.parametrize(("limit", "delta"), [(np.inf, 1.0), (3e38, 1e-30), (1e10, 1.0)])
def test_more_elements_than_int32_counts_are_refused(limit: float, delta: float) -> None:
    numbers = [T("float32", (), value=np.array(v, np.float32)) for v in (0.0, limit, delta)]
    with (
        np.errstate(over="ignore"),
        pytest.raises(ModelError, match="operator 0 RANGE: length: expected up to 2147483647"),
    ):
        allocate(build("RANGE", numbers, [T("float32", (1,))]))
