"""`tflq/engine/kernels/filling_in.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.single_op import T, allocate, build
from tflq.errors import ModelError


@pytest.mark.parametrize(("limit", "delta"), [(np.inf, 1.0), (3e38, 1e-30), (1e10, 1.0)])
def test_more_elements_than_int32_counts_are_refused(limit: float, delta: float) -> None:
    numbers = [T("float32", (), value=np.array(v, np.float32)) for v in (0.0, limit, delta)]
    with (
        np.errstate(over="ignore"),
        pytest.raises(ModelError, match="operator 0 RANGE: length: expected up to 2147483647"),
    ):
        allocate(build("RANGE", numbers, [T("float32", (1,))]))
