"""Models that some releases refuse or crash on while others take them, as observed in their wheels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.each import each
from support.running import run_once
from support.single_op import T, build
from tflq.engine.api.files import load
from tflq.engine.api.interpreter import Interpreter
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import TflqError, UndefinedResultError, UnsupportedError


def four_bits(scales: int, units: int = 2, bias: int = 0) -> bytes:
    """FULLY_CONNECTED of int8 by int4 with that number of scales, and of scales of the bias."""
    w = T("int4", (units, 4), [0.5] * scales, value=np.ones((units, 4), np.int8))
    operands = [T("int8", (2, 3, 4), 0.5), w]
    if bias:
        operands.append(T("int32", (units,), [0.25] * bias, value=np.zeros(units, np.int32)))
    options = ("FullyConnectedOptions", {"keep_num_dims": True})
    return build("FULLY_CONNECTED", operands, [T("int8", (2, 3, units), 0.3, 3)], options, 4)


def mean(ratio: float) -> bytes:
    """MEAN of uint8 over an image, whose scale is `ratio` of the output's."""
    operands = [T("uint8", (1, 2, 2, 1), ratio, 3), T("int32", (2,), value=np.array([1, 2], np.int32))]
    return build("MEAN", operands, [T("uint8", (1, 1, 1, 1), 1.0, 7)], ("ReducerOptions", {"keep_dims": True}))


def depthwise(kind: str) -> bytes:
    """DEPTHWISE_CONV_2D without a bias."""
    scale, zero = (None, 0) if kind == "float32" else (0.5, 128 if kind == "uint8" else 0)
    weights = "int8" if kind == "int16" else kind
    operands = [T(kind, (1, 3, 3, 2), scale, zero)]
    operands.append(T(weights, (1, 1, 1, 2), scale, zero, 3, value=np.ones((1, 1, 1, 2), weights)))
    options: dict[str, Any] = {"stride_w": 1, "stride_h": 1, "depth_multiplier": 1}
    options |= {"dilation_w_factor": 1, "dilation_h_factor": 1}
    return build(
        "DEPTHWISE_CONV_2D", operands, [T(kind, (1, 3, 3, 2), scale, zero)], ("DepthwiseConv2DOptions", options), 3
    )


def product(kind: str, size: int) -> bytes:
    """REDUCE_PROD over an axis of that size."""
    operands = [T(kind, (3, size), 0.5), T("int32", (1,), value=np.array([1], np.int32))]
    return build("REDUCE_PROD", operands, [T(kind, (3,), 1.0)], ("ReducerOptions", {"keep_dims": False}), 2)


OPTIMIZED = "tflite-2.9-opt tflite-2.14-opt litert-1.0-opt litert-2.1-xnnpack litert-opt litert-xnnpack"


@each(
    ("model", "refusing", "taking", "error"),
    [
        (four_bits(2), "tflite-2.14-ref tflite-2.14-opt litert-1.0-opt litert-1.0-xnnpack", "litert-1.4-opt", 0),
        (four_bits(1), "", "tflite-2.14-ref tflite-2.14-opt litert-1.0-ref litert-1.0-xnnpack litert-xnnpack", 0),
        (four_bits(1, 1, bias=1), "litert-1.4-xnnpack litert-2.0-xnnpack", "litert-1.0-xnnpack litert-2.1-xnnpack", 0),
        (four_bits(2, bias=1), "litert-1.4-xnnpack litert-2.0-xnnpack", "litert-2.1-xnnpack litert-xnnpack", 0),
        (four_bits(2, bias=2), "", "litert-1.4-xnnpack litert-2.0-xnnpack litert-xnnpack", 0),
        (mean(256.0), "litert-1.0-xnnpack", "litert-1.0-opt litert-1.4-xnnpack litert-xnnpack", 0),
        (mean(0.003), "litert-1.0-xnnpack", "litert-1.0-opt litert-1.4-xnnpack litert-xnnpack", 0),
        (mean(255.0), "", "litert-1.0-xnnpack", 0),
        (depthwise("int8"), OPTIMIZED, "litert-ref tflite-2.14-ref", 1),
        (depthwise("uint8"), OPTIMIZED, "litert-ref tflite-2.14-ref", 1),
        (depthwise("int16"), "", "litert-opt litert-ref", 1),
        (product("int16", 1), "litert-2.0-opt litert-2.1-opt", "litert-2.2-opt litert-opt litert-2.1-ref", 1),
        (product("int8", 2), "", "litert-2.1-opt litert-opt", 1),
    ],
)
def test_forms(model: bytes, refusing: str, taking: str, error: int) -> None:
    for name in taking.split():
        make_plan(load(model), by_name(name))
    expected: type[TflqError] = (UnsupportedError, UndefinedResultError)[error]
    for name in refusing.split():
        with pytest.raises(expected):
            make_plan(load(model), by_name(name))


def test_means_of_earlier_xnnpack_add_the_rounded_part_of_zero_points() -> None:
    """LiteRT 1.4.0 and 2.0.3: a mean of -62.5 is -62, since 1/7 is rounded first."""
    operands = [T("int8", (1, 7), 0.5, -125), T("int32", (1,), value=np.array([1], np.int32))]
    model = build("MEAN", operands, [T("int8", (1,), 1.0, -121)], ("ReducerOptions", {"keep_dims": False}), 2)
    for name in ("litert-1.4-xnnpack", "litert-2.0-xnnpack"):
        (code,) = run_once(Interpreter(model_content=model, profile=name), [np.full((1, 7), -8, np.int8)])
        assert code.tolist() == [-62]
