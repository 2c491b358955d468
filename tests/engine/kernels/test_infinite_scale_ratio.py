"""Scales so far apart that their ratio overflows float32: under x86-64 every code becomes the output's zero point."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from support.single_op import T, assert_same, build, tflq


@pytest.mark.parametrize(("type_", "point"), [("int8", -5), ("uint8", 7), ("int16", 0)])
def test_relu(type_: str, point: int) -> None:
    model = build("RELU", [T(type_, (5,), 2e-4, point)], [T(type_, (5,), 3.59e-43, point)], version=2)
    codes = np.array([0, 1, 7, 100, 127], type_)
    assert (tflq(model, [codes])[0] == point).all()
    if platform.machine() in ("x86_64", "AMD64"):  # elsewhere the runtime aborts
        assert_same(model, [codes])
