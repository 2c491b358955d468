"""`tflq/engine/kernels/random_numbers.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.single_op import T, build, tflq
from tflq.errors import OperatorFailed


def test_a_negative_number_of_samples_is_refused() -> None:
    model = build("MULTINOMIAL", [T("float32", (1, 3)), T("int32", ())], [T("int32", (1, 1))], ("RandomOptions", {}))
    with pytest.raises(
        OperatorFailed, match="operator 0 MULTINOMIAL: eval failed: ValueError: the number of samples is -1"
    ):
        tflq(model, [np.zeros((1, 3), np.float32), np.array(-1, np.int32)])
