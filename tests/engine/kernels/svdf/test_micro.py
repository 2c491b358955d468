"""SVDF of TensorFlow Lite Micro: what its Prepare asks for, and what it ignores."""

from __future__ import annotations

import numpy as np
import pytest

from support.single_op import T, build
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import TflqError, UndefinedResultError, UnsupportedError

NONE, RELU = 0, 1


def svdf(activation: int = RELU, bias_scale: float | None = 0.0005) -> bytes:
    """One unit of rank 1 over two moments; the bias has the scale of state times time, 0.01 * 0.05, by default."""
    inputs: list[T | None] = [
        T("int8", (1, 2), 0.1, 5),
        T("int8", (1, 2), 0.02, 0, value=np.array([[100, -50]], np.int8)),
        T("int16", (1, 2), 0.05, 0, value=np.array([[20, -30]], np.int16)),
        None if bias_scale is None else T("int32", (1,), bias_scale, 0, value=np.array([7], np.int32)),
        T("int16", (1, 2), 0.01, 0, variable=True),
    ]
    options = ("SVDFOptions", {"rank": 1, "fused_activation_function": activation})
    return build("SVDF", inputs, [T("int8", (1, 1), 0.1, -4)], options, version=3)


def outputs(content: bytes, profile: str = "tflm") -> list[int]:
    interpreter = Interpreter(model_content=content, profile=profile)
    interpreter.allocate_tensors()
    made = []
    for sample in ([[7, -100]], [[127, 3]]):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array(sample, np.int8))
        interpreter.invoke()
        made.append(int(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0, 0]))
    return made


def test_the_activation_is_ignored() -> None:
    assert outputs(svdf(NONE)) == outputs(svdf(RELU))
    with pytest.raises(TflqError, match="fused activation function"):
        outputs(svdf(NONE), "litert-ref")


def test_a_bias_of_another_scale_is_refused() -> None:
    assert outputs(svdf(bias_scale=0.0005 + 0.9e-5)) == outputs(svdf())
    with pytest.raises(UnsupportedError, match="scale of the bias"):
        outputs(svdf(bias_scale=0.0005 + 1.1e-5))
    with pytest.raises(UndefinedResultError):
        outputs(svdf(bias_scale=None))
