"""XNNPACK decides by the shapes that a file records, before any operator announces others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tflq
from support.graphs import Graph, Op, build
from support.processors import has_xnnpack_profile
from support.running import assert_same, run
from support.single_op import T, litert
from tflq.comparison.results import Verdict
from tflq.comparison.verification.verifying import verify
from tflq.errors import ModelError, UnsupportedError

Array = np.ndarray[Any, Any]
IMAGE, SMALL = (1, 9, 9, 3), (1, 5, 5, 3)


def convolution(kind: str, recorded: bool, following: bool = False) -> bytes:
    """A convolution whose output has its shape, or none, and perhaps an ADD of the output to itself."""
    rng = np.random.default_rng(4)
    is_deep = kind == "DEPTHWISE_CONV_2D"
    shape = (1, 3, 3, 3) if is_deep else (3, 3, 3, 3)
    along = 3 if is_deep else 0
    value = rng.integers(-127, 128, shape).astype(np.int8)
    w = T("int8", shape, scale=[0.013, 0.011, 0.017], zero_point=[0] * 3, axis=along, value=value)
    b = T("int32", (3,), scale=[0.00065, 0.00055, 0.00085], zero_point=[0] * 3, value=np.array([9, -5, 60], np.int32))
    x = T("int8", IMAGE, scale=[0.05], zero_point=[-7])
    y, z = (T("int8", SMALL if recorded else (), scale=[s], zero_point=[11]) for s in (0.097, 0.2))
    options = {"padding": 0, "stride_h": 2, "stride_w": 2, "dilation_h_factor": 1, "dilation_w_factor": 1}
    options |= {"fused_activation_function": 0} | ({"depth_multiplier": 1} if is_deep else {})
    table = "DepthwiseConv2DOptions" if is_deep else "Conv2DOptions"
    ops = [Op(kind, [0, 1, 2], [3], (table, options), version=3)]
    if following:
        ops.append(Op("ADD", [3, 3], [4], ("AddOptions", {"fused_activation_function": 0}), version=2))
    return build(Graph([x, w, b, y, z], [0], [4 if following else 3], ops))


def codes(seed: int) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, IMAGE).astype(np.int8)


@pytest.mark.parametrize("following", [False, True])
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_an_output_without_a_recorded_shape_is_left(kind: str, following: bool) -> None:
    for recorded in (True, False):
        model = convolution(kind, recorded, following)
        for seed in range(3):
            x = codes(seed)
            assert_same(run(model, [x], "litert-xnnpack"), litert(model, [x], "BUILTIN"), f"{recorded} {seed}")


def test_the_kernels_differ() -> None:
    taken, left = (convolution("CONV_2D", recorded) for recorded in (True, False))
    apart = [
        run(taken, [codes(s)], "litert-xnnpack")[0] != run(left, [codes(s)], "litert-xnnpack")[0] for s in range(9)
    ]
    assert any(one.any() for one in apart)


@has_xnnpack_profile
def test_operators_alone_are_decided_as_in_the_model() -> None:
    model = convolution("CONV_2D", recorded=False, following=True)
    assert verify(model, "litert-xnnpack", samples=4).verdict == Verdict.SAME


def test_a_resized_input_is_recorded() -> None:
    x = T("float32", ())
    model = build(Graph([x, T("float32", ())], [0], [1], [Op("ABS", [0], [1])]))
    interpreter = tflq.Interpreter(model_content=model, profile="litert-xnnpack")
    interpreter.resize_tensor_input(0, [2, 3])
    interpreter.allocate_tensors()


@has_xnnpack_profile
def test_softmax_needs_no_recorded_shape() -> None:
    x = np.random.default_rng(5).normal(0, 3, (1, 10)).astype(np.float32)
    tensors = [T("float32", x.shape), T("float32", ()), T("float32", x.shape)]
    ops = [Op("FLOOR", [0], [1]), Op("SOFTMAX", [1], [2], ("SoftmaxOptions", {"beta": 1.0}))]
    model = build(Graph(tensors, [0], [2], ops))
    assert_same(run(model, [x], "litert-xnnpack"), litert(model, [x], "BUILTIN"))


@has_xnnpack_profile
def test_hybrid_dense_layers_need_one() -> None:
    weights = np.arange(-14, 14, dtype=np.int8).reshape(2, 14)
    tensors = [T("float32", (1, 14)), T("float32", ()), T("int8", (2, 14), 0.01, value=weights), T("float32", (1, 2))]
    ops = [Op("FLOOR", [0], [1]), Op("FULLY_CONNECTED", [1, 2, -1], [3], ("FullyConnectedOptions", {}), 9)]
    model, x = build(Graph(tensors, [0], [3], ops)), np.ones((1, 14), np.float32)
    with pytest.raises(RuntimeError, match="failed to prepare"):
        litert(model, [x], "BUILTIN")
    with pytest.raises(UnsupportedError, match="recorded shape"):
        run(model, [x], "litert-xnnpack")


@has_xnnpack_profile
@pytest.mark.parametrize("kind", ["float32", "hybrid", "int8"])
@pytest.mark.parametrize("padding", [0, 1])
def test_transposed_convolutions_take_the_batch_of_their_image(kind: str, padding: int) -> None:
    """The shape operand still holds the batch of the file."""
    rng = np.random.default_rng(6)
    size = (6, 8) if padding == 0 else (7, 9)
    values = rng.integers(-127, 128, (5, 3, 3, 2)).astype(np.int8)
    scale, stored = (None, "float32") if kind == "float32" else (0.01, "int8")
    kind = "float32" if kind == "hybrid" else kind
    x = rng.normal(0, 40, (3, 3, 4, 2)).clip(-128, 127).astype(kind)
    tensors = [
        T(kind, (1, 3, 4, 2), 0.02 if kind == "int8" else None),
        T("int32", (4,), value=np.array([1, *size, 5], np.int32)),
        T(stored, values.shape, scale, value=values.astype(stored)),
        T(kind, (1, *size, 5), 0.4 if kind == "int8" else None),
    ]
    options = ("TransposeConvOptions", {"padding": padding, "stride_h": 2, "stride_w": 2})
    model = build(Graph(tensors, [0], [3], [Op("TRANSPOSE_CONV", [1, 2, 0], [3], options, 3)]))
    got = run(model, [x], "litert-xnnpack")
    assert got[0].shape == (3, *size, 5)
    assert_same(got, litert(model, [x], "BUILTIN"))
    with pytest.raises(ModelError, match="output shape"):
        run(model, [x], "litert-ref")
