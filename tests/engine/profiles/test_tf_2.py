"""TensorFlow's own packages of 2.x: what the recorded models do not show."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from opfuzz.case import Case
from opfuzz.one_operator import T
from opfuzz.remote_worker import invoke
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


@pytest.mark.parametrize(
    ("profile", "expected"), [("tf-2.3-opt", -6), ("tf-2.5-ref", -6), ("tf-2.5-opt", -6), ("litert-opt", 0)]
)
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


@pytest.mark.parametrize(
    ("op", "multiple", "expected"),
    [
        ("LOGISTIC", 1.0, [18376, 14391, 31236, 243]),
        ("LOGISTIC", 0.65, [18376, 14391, 31236, 243]),
        ("LOGISTIC", 1.3, [18374, 14394, 31234, 247]),
        ("LOGISTIC", 2.4, [20306, 12462, 32689, 2]),
        ("TANH", 0.65, [14836, -14836, 32767, -32767]),
        ("TANH", 1.3, [7845, -7845, 32611, -32764]),
        ("TANH", 1.42, [14838, -14838, 32767, -32767]),
        ("TANH", 2.0, [14836, -14836, 32767, -32767]),
        ("TANH", 2.4, [24628, -24628, 32767, -32767]),
        ("TANH", 4.096, [24628, -24628, 32767, -32767]),
    ],
)
def test_sigmoids_of_2_3_take_whole_multiples_of_a_scale(op: str, multiple: float, expected: list[int]) -> None:
    assert codes_of(sigmoid(op, multiple), "tf-2.3-opt") == expected


def test_logistic_of_2_3_refuses_what_lies_beyond_its_table() -> None:
    with pytest.raises(UndefinedResultError, match="wrap around to its start"):
        codes_of(sigmoid("LOGISTIC", 4.0), "tf-2.3-opt")


def sigmoid(op: str, multiple: float) -> Case:
    """Four 16-bit codes; the scale is so many times 2**-12."""
    codes = np.array([1000, -1000, 12345, -20000], np.int16)
    x, y = T("int16", codes.shape, multiple * 2.0**-12), T("int16", codes.shape, 2.0**-15)
    return Case(op, (x,), (y,), ((codes,),))


def test_resize_bilinear_of_2_3_extrapolates_and_wraps() -> None:
    codes = np.array([74, 82, 118, -55], np.int8).reshape(1, 2, 2, 1)
    x, size, y = T("int8", codes.shape, 0.5), T("int32", (2,), value=[4, 4]), T("int8", (1, 4, 4, 1), 0.5)
    options = ("ResizeBilinearOptions", {"align_corners": False, "half_pixel_centers": True})
    seen = [50, 76, 103, 116, 94, 76, 57, 48, -117, 75, 11, -20, -95, 75, -11, -54]
    assert codes_of(Case("RESIZE_BILINEAR", (x, size), (y,), ((codes,),), options, 3), "tf-2.3-opt") == seen


def test_transpose_conv_of_2_3_refuses_a_scale_for_several_channels() -> None:
    shape, w = T("int32", (4,), value=(1, 1, 1, 2)), T("int8", (2, 1, 1, 1), 0.5, value=[[[[4]]], [[[5]]]])
    x, y = T("int8", (1, 1, 1, 1), 0.5), T("int8", (1, 1, 1, 2), 0.5)
    options = ("TransposeConvOptions", {"padding": 1, "stride_h": 1, "stride_w": 1})
    case = Case("TRANSPOSE_CONV", (shape, w, x), (y,), ((np.full((1, 1, 1, 1), 7, np.int8),),), options, 2)
    with pytest.raises(TflqError, match="only the first gets a multiplier"):
        codes_of(case, "tf-2.3-opt")
    assert codes_of(case, "tf-2.5-opt") == [14, 18]


def test_int32_quotients_of_2_3_are_refused() -> None:
    tensors = [T("int32", (1,)) for _ in range(3)]
    values = np.array([9], np.int32), np.array([2], np.int32)
    case = Case("DIV", tuple(tensors[:2]), tuple(tensors[2:]), (values,), ("DivOptions", {}), 2)
    with pytest.raises(TflqError, match="float32"):
        codes_of(case, "tf-2.3-opt")


def test_slices_of_2_3_without_elements_are_refused() -> None:
    bounds = [T("int32", (1,), value=[at]) for at in (2, 2, 1)]
    x, empty, some = T("int8", (4,), 0.5), T("int8", (0,), 0.5), T("int8", (2,), 0.5)
    codes = np.array([1, 2, 3, 4], np.int8)
    options = ("StridedSliceOptions", {})
    with pytest.raises(TflqError, match="without elements"):
        codes_of(Case("STRIDED_SLICE", (x, *bounds), (empty,), ((codes,),), options, 2), "tf-2.3-opt")
    bounds[1] = T("int32", (1,), value=[4])
    assert codes_of(Case("STRIDED_SLICE", (x, *bounds), (some,), ((codes,),), options, 2), "tf-2.3-opt") == [3, 4]


def test_int16_sums_of_2_3_are_made_by_shifts() -> None:
    operands = np.array([3], np.int16), np.array([10], np.int16)
    tensors = T("int16", (1,), 2.0**-6), T("int16", (1,), 2.0**-5), T("int16", (1,), 2.0**-5)
    case = Case("ADD", tensors[:2], tensors[2:], (operands,), ("AddOptions", {"pot_scale_int16": False}))
    assert codes_of(case, "tf-2.3-opt") == [12]
    odd = T("int16", (1,), 0.03)
    with pytest.raises(TflqError, match="power of two"):
        codes_of(Case("ADD", (odd, odd), (odd,), (operands,), ("AddOptions", {})), "tf-2.3-opt")
