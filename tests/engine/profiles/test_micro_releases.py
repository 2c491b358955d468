"""TensorFlow Lite Micro before and from its build of 13 October 2026: elements on which the two differ.

Codes are those of the packages tflite-micro 0.dev20261012203412 and 0.dev20261013214400, run on these models.
"""

from __future__ import annotations

import numpy as np
import pytest

from support.running import run
from support.single_op import T, build
from tflq.engine.profiles import by_name
from tflq.model.flatbuf import read

ELEMENTS = {
    "SUB": (
        [(0.0037461230531334877, 18, 126), (0.0021435245871543884, -27, 118)],
        (0.004361405503004789, -115),
        ("SubOptions", {"fused_activation_function": 0}),
        (-94, -93),
    ),
    "LEAKY_RELU": (
        [(0.06204851716756821, 17, 21)],
        (0.07091259211301804, 49),
        ("LeakyReluOptions", {"alpha": 0.5}),
        (53, 52),
    ),
}


@pytest.mark.parametrize("op", ELEMENTS)
def test_the_two_lines_of_releases_differ_as_measured(op: str) -> None:
    inputs, (scale, zero), options, (before, since) = ELEMENTS[op]
    tensors = [T("int8", (1, 1), s, z) for s, z, _ in inputs]
    model = read(build(op, tensors, [T("int8", (1, 1), scale, zero)], options))
    codes = [np.array([[code]], np.int8) for _, _, code in inputs]
    for name, expected in (("tflm-2026.9", before), ("tflm-2026.9-cmsis-nn", before), ("tflm", since)):
        (got,) = run(model, codes, by_name(name))
        assert got.item() == expected, name
