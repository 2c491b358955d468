"""SVDF of TensorFlow Lite Micro: what its Prepare asks for, and what it ignores."""

from __future__ import annotations

import make_questions
import numpy as np
import pytest

from support.single_op import T, build
from tflq.engine.api.files import load
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


#: Codes of three steps of `tools/make_questions.py`'s model: its input, the input inverted, and its input.
RECORDED = {
    # tflite-micro 0.dev20260203 and 0.dev20261023
    "tflm": [
        [-128, 82, 57, -128, -7, 113, -50, 0, -27, -61, -33, -128, -11, 97, 9, -62],
        [-128, 21, -54, -47, -2, 94, -27, -21, -39, -128, -76, -88, -88, 127, -16, 35],
        [-128, 67, 11, -128, 0, 101, -128, -9, 10, -121, 22, -128, 33, 127, 7, 127],
    ],
    # CMSIS-NN 99f736a, arm_svdf_s8, GCC 12, both builds: bounds as cmsis_nn/svdf.cc gives them, multipliers of float64
    "tflm-cmsis-nn": [
        [74, 13, 23, -40, 33, 97, -10, 0, -69, 53, -43, 62, -24, -128, 1, -73],
        [-55, -8, -40, 50, 26, -58, 9, -6, -52, 20, -38, -86, -120, -82, -21, -42],
        [32, 67, 11, -86, 0, 106, -128, -9, 10, -19, 88, 117, 54, -128, 7, 25],
    ],
    "tflm-cmsis-nn-single": [
        [75, 13, 23, -40, 33, 97, -10, 0, -69, 53, -43, 62, -24, -128, 1, -73],
        [-55, -8, -40, 50, 26, -58, 9, -6, -52, 20, -38, -86, -120, -82, -21, -42],
        [34, 67, 11, -86, 0, 106, -128, -9, 10, -19, 88, 117, 54, -128, 7, 25],
    ],
}


def three_steps(profile: str) -> list[list[int]]:
    content, given = make_questions.svdf_state(np.random.default_rng(make_questions.SEED))
    interpreter = Interpreter(model_content=content, profile=profile)
    interpreter.allocate_tensors()
    made = []
    for sample in (given, ~given, given):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
        interpreter.invoke()
        made.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0].tolist())
    return made


@pytest.mark.parametrize("profile", RECORDED)
def test_an_8_bit_state_beyond_its_type_wraps_as_recorded(profile: str) -> None:
    assert three_steps(profile) == RECORDED[profile]


def test_an_8_bit_state_saturates_in_spec() -> None:
    """The formula in reals, each step rounded once, is at most one code away."""
    content, given = make_questions.svdf_state(np.random.default_rng(make_questions.SEED))
    model = load(content)
    tensors = model.subgraphs[0].tensors
    constants = [np.frombuffer(bytes(model.buffers[t.buffer].data), np.int8).reshape(t.shape) for t in tensors[1:3]]
    features, time = (c.astype(np.float64) for c in constants)
    bias = np.frombuffer(bytes(model.buffers[tensors[3].buffer].data), np.int32)
    state = np.full((16, 3), 40.0)
    for sample, made in zip((given, ~given, given), three_steps("spec"), strict=True):
        latest = np.clip(np.rint(features @ (sample[0].astype(np.float64) - 3) * 0.05 * 0.02 / 0.05) + 40, -128, 127)
        state = np.concatenate([state[:, 1:], latest[:, None]], 1)
        total = ((state - 40) * time).sum(1) + bias
        assert np.abs(np.clip(np.rint(total * 0.05 * 0.01 / 0.06) - 5, -128, 127) - made).max() <= 1
    assert three_steps("spec") != RECORDED["tflm"]
