"""Memory of the arrays that an object holds."""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.engine.interpreter.plan import Footprint


def test_arrays_are_found_in_partials_and_closures() -> None:
    array = np.zeros(1000)
    found = Footprint()
    found.add(partial(max, array, key=np.zeros(10)), lambda: array)
    assert found.bytes == 8000 + 80
