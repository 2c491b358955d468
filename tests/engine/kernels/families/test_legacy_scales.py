"""Operands of several scales, in kernels that know one: they read as 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.running import run_once
from support.single_op import T, build
from tflq.engine.api.interpreter import Interpreter

BIAS = np.arange(4, dtype=np.float32)


def run(model: bytes, profile: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return run_once(Interpreter(model_content=model, profile=profile), [x])[0]


@pytest.mark.parametrize("profile", ["tflite-2.7-ref", "tflite-2.12-opt", "tflite-2.14-ref", "tflite-2.14-opt"])
@pytest.mark.parametrize("biased", [False, True])
def test_hybrid_dense_products_up_to_2_14_are_the_bias(profile: str, biased: bool) -> None:
    w = T("int8", (4, 3), [0.1, 0.2, 0.3, 0.4], [0] * 4, 0, value=np.arange(12).reshape(4, 3))
    inputs = [T("float32", (2, 3)), w, T("float32", (4,), value=BIAS) if biased else None]
    model = build("FULLY_CONNECTED", inputs, [T("float32", (2, 4))], ("FullyConnectedOptions", {}), version=3)
    x = np.array([[1, -2, 3], [0.5, 4, 9]], np.float32)
    assert (run(model, profile, x) == (BIAS if biased else 0)).all()
    assert (run(model, "litert-1.0-ref", x) != (BIAS if biased else 0)).any()


@pytest.mark.parametrize(
    ("profile", "is_zero"), [("tflite-2.14-opt", True), ("litert-1.0-opt", True), ("litert-opt", False)]
)
def test_hybrid_matrix_products_up_to_litert_1_0_are_zero(profile: str, is_zero: bool) -> None:
    y = T("int8", (3, 4), [0.1, 0.2, 0.3, 0.4], [0] * 4, 1, value=np.arange(12).reshape(3, 4) + 1)
    options = ("BatchMatMulOptions", {"asymmetric_quantize_inputs": False})
    inputs, outputs = [T("float32", (2, 3)), y], [T("float32", (2, 4))]
    model = build("BATCH_MATMUL", inputs, outputs, options, version=1)
    x = np.array([[1, -2, 3], [0.5, 4, 9]], np.float32)
    assert (run(model, profile, x) == 0).all() == is_zero
