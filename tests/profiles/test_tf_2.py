"""TensorFlow's own packages of 2.x: what the recorded models do not show."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from opfuzz.case import Case
from opfuzz.one_operator import T
from opfuzz.worker import invoke
from tflq.errors import TflqError, UndefinedResultError

FULLY = ("FullyConnectedOptions", {"fused_activation_function": 0})


def log_softmax(*codes: int) -> Case:
    """A row of int8 codes, scale 0.05."""
    row = np.array([codes], np.int8)
    tensors = T("int8", row.shape, 0.05), T("int8", row.shape, 0.0625, 127)
    return Case("LOG_SOFTMAX", tensors[:1], tensors[1:], ((row,),), ("LogSoftmaxOptions", {}))


def codes_of(case: Case, profile: str) -> list[int]:
    """The profile's outputs."""
    interpreter = tflq.Interpreter(model_content=case.model(), profile=profile)
    interpreter.allocate_tensors()
    (codes,) = invoke(interpreter, case.samples[0])
    return [int(code) for code in codes.reshape(-1)]


@pytest.mark.parametrize("profile", ["tf-2.5-opt", "litert-opt"])
def test_near_codes_have_their_log_softmax(profile: str) -> None:
    assert codes_of(log_softmax(127, 0, 120), profile) == [118, 17, 113]


def test_log_softmax_of_2_5_refuses_codes_that_it_looks_up_elsewhere() -> None:
    with pytest.raises(UndefinedResultError, match="more than 127 below"):
        codes_of(log_softmax(127, -1), "tf-2.5-opt")
    assert codes_of(log_softmax(127, -1), "tf-2.5-ref") == [-128, -128]


@pytest.mark.parametrize(
    ("profile", "kind", "expected"),
    [
        ("tf-2.5-opt", "int8", 4),
        ("tf-2.5-opt", "uint8", 4),
        ("tf-2.5-ref", "uint8", 4),
        ("tf-2.5-ref", "int8", 3),
        ("litert-opt", "int8", 3),
        ("litert-opt", "uint8", 3),
    ],
)
def test_means_of_images_cut_off_what_the_zero_point_makes(profile: str, kind: str, expected: int) -> None:
    codes = np.array([[[[5]], [[6]]]], kind)
    x, axes, y = T(kind, codes.shape, 1.25, 3), T("int32", (2,), value=[1, 2]), T(kind, (1, 1, 1, 1), 1.0, 0)
    case = Case("MEAN", (x, axes), (y,), ((codes,),), ("ReducerOptions", {"keep_dims": True}), 2)
    assert codes_of(case, profile) == [expected]


def transpose_conv() -> Case:
    """-3 times 4 at half the scale, with a RELU behind it."""
    shape, w = T("int32", (4,), value=(1, 1, 1, 1)), T("int8", (1, 1, 1, 1), [0.5], [0], 0, value=[[[[4]]]])
    x, y = T("int8", (1, 1, 1, 1), 0.5), T("int8", (1, 1, 1, 1), 0.5)
    options = {"padding": 1, "stride_h": 1, "stride_w": 1, "fused_activation_function": 1}
    return Case(
        "TRANSPOSE_CONV", (shape, w, x), (y,), ((np.array([[[[-3]]]], np.int8),),), ("TransposeConvOptions", options), 3
    )


@pytest.mark.parametrize(("profile", "expected"), [("tf-2.5-ref", -6), ("tf-2.5-opt", -6), ("litert-opt", 0)])
def test_fused_activations_of_transpose_conv_are_ignored(profile: str, expected: int) -> None:
    assert codes_of(transpose_conv(), profile) == [expected]


def test_several_weight_scales_read_as_0() -> None:
    weights = T("int8", (2, 1), [0.5, 0.25], [0, 0], 0, value=[[4], [4]])
    tensors = T("int8", (1, 1), 0.5), weights, T("int8", (1, 2), 0.5, 7)
    case = Case("FULLY_CONNECTED", tensors[:2], tensors[2:], ((np.array([[3]], np.int8),),), FULLY, 5)
    assert codes_of(case, "tf-2.5-opt") == codes_of(case, "tf-2.5-ref") == [7, 7]
    assert codes_of(case, "litert-opt") == [13, 10]


@pytest.mark.parametrize("profile", ["tf-2.5-ref", "tf-2.5-opt"])
def test_int32_outputs_of_batch_matmul_are_refused(profile: str) -> None:
    tensors = T("int8", (2, 1), 0.5), T("int8", (1, 2), 0.5), T("int32", (2, 2), 0.25)
    operands = np.array([[1], [2]], np.int8), np.array([[1, 2]], np.int8)
    options = ("BatchMatMulOptions", {"adj_x": False, "adj_y": False})
    with pytest.raises(TflqError, match="written as 8-bit codes"):
        codes_of(Case("BATCH_MATMUL", tensors[:2], tensors[2:], (operands,), options, 3), profile)


@pytest.mark.parametrize("profile", ["tf-2.5-ref", "tf-2.5-opt"])
def test_hybrid_convolutions_are_refused(profile: str) -> None:
    weights = T("int8", (2, 1, 1, 1), [0.5, 0.25], [0, 0], 0, value=[[[[4]]], [[[4]]]])
    bias = T("float32", (2,), value=[0.0, 0.0])
    tensors = T("float32", (1, 1, 1, 1)), weights, bias, T("float32", (1, 1, 1, 2))
    options = {"padding": 1, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    case = Case(
        "CONV_2D", tensors[:3], tensors[3:], ((np.ones((1, 1, 1, 1), np.float32),),), ("Conv2DOptions", options)
    )
    with pytest.raises(TflqError, match="8-bit filters are not modelled"):
        codes_of(case, profile)
