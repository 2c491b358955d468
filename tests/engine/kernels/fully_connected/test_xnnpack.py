"""`tflq/engine/kernels/fully_connected_xnnpack.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.single_op import T, build
from tflq.errors import TflqError


def biased(kind: str, bias: int) -> bytes:
    """Eight units of ones, whose sums are scaled by 2**-23."""
    scales, zeros = [2.0**-20] * 8, [0] * 8
    weights, biases = (
        T(kind, (8, 4), scales, zeros, value=np.ones((8, 4))),
        T("int32", (8,), scales, zeros, value=[bias] * 8),
    )
    operands = [T("int8", (1, 4), 1.0), weights, biases]
    options = ("FullyConnectedOptions", {"fused_activation_function": 0})
    return build("FULLY_CONNECTED", operands, [T("int8", (1, 8), 8.0)], options, {"int4": 10, "int8": 5}[kind])


@pytest.mark.parametrize(("kind", "bias"), [("int4", 2**27 - 513), ("int8", 2**28)])
def test_large_biases(kind: str, bias: int) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    codes = np.array([[1, -128, 127, 5]], np.int8)
    assert tflq.verify(biased(kind, bias), against="litert-xnnpack", inputs=[codes]).verdict.value == "same"


def test_sums_of_4_bit_weights_that_xnnpack_wraps_are_refused() -> None:
    interpreter = tflq.Interpreter(model_content=biased("int4", 2**27 - 512), profile="litert-xnnpack")
    with pytest.raises(TflqError, match="28 bits"):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("version", [7, 8, 9])
def test_version_8_is_not_taken(version: int) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    rng = np.random.default_rng(version)
    operands = [
        T("float32", (3, 21)),
        T("float32", (17, 21), value=rng.standard_normal((17, 21), np.float32)),
        T("float32", (17,), value=rng.standard_normal(17, np.float32)),
    ]
    options = ("FullyConnectedOptions", {"fused_activation_function": 0})
    model = build("FULLY_CONNECTED", operands, [T("float32", (3, 17))], options, version)
    x = rng.standard_normal((3, 21), np.float32)
    assert tflq.verify(model, against="litert-xnnpack", inputs=[x]).verdict.value == "same"


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("profile", ["litert-opt", "litert-xnnpack"])
def test_zero_points_of_16_bit_outputs_of_uint8_are_not_added(profile: str, bias: bool) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    rng = np.random.default_rng(1)
    operands = [
        T("uint8", (3, 21), 0.01, 100),
        T("uint8", (5, 21), 0.02, 120, value=rng.integers(0, 256, (5, 21))),
        *([T("int32", (5,), 0.0002, 0, value=rng.integers(-900, 900, 5))] if bias else []),
    ]
    options = ("FullyConnectedOptions", {"fused_activation_function": 1})
    model = build("FULLY_CONNECTED", operands, [T("int16", (3, 5), 0.001, -7)], options, 4)
    x = rng.integers(0, 256, (3, 21)).astype(np.uint8)
    assert tflq.verify(model, against=profile, inputs=[x]).verdict.value == "same"
