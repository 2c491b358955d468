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
from tflq.comparison.verification import Verdict, verify

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
