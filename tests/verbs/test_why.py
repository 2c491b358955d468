"""`tflq.why` takes arrays, as `tflq.explain` does."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support import suites
from tflq.comparison.verification.evidence.dumps import load_dump
from tflq.errors import InputError

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
DUMP = suites.ROOT / "golden" / "dumps" / "digits_mobilenet_int8.cmsis_single.npz"


def test_arrays_are_evidence_as_the_file_that_holds_them() -> None:
    arrays = load_dump(tflq.load(MODEL), DUMP).tensors
    found, known = tflq.why(MODEL, arrays), tflq.why(MODEL, DUMP)
    assert (found.fault, found.nearest, found.evidence) == (known.fault, known.nearest, "arrays")
    assert str(found).splitlines()[0] == str(known).splitlines()[0]


@pytest.mark.parametrize("arrays", [{}, {"nobody": np.zeros(3)}, {10**9: np.zeros(3)}])
def test_arrays_of_no_tensor_are_refused(arrays: dict[int | str, np.ndarray]) -> None:
    with pytest.raises(InputError):
        tflq.why(MODEL, arrays)
