"""Convolutions of XNNPACK up to LiteRT 2.1, whose SAME padding is negative: every output is the bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.each import each
from support.running import run_once
from support.single_op import T, build
from tflq.engine.api.interpreter import Interpreter

PROFILES = ("tflite-2.12-xnnpack", "litert-1.0-xnnpack", "litert-2.0-xnnpack", "litert-2.1-xnnpack")
RIGHT = ("litert-2.2-xnnpack", "litert-xnnpack", "litert-2.1-ref", "litert-2.1-opt")
Geometry = tuple[int, tuple[int, int], tuple[int, int]]
#: Size of the image, kernel, strides.
NEGATIVE: tuple[Geometry, ...] = (
    (10, (2, 2), (5, 5)),
    (10, (3, 1), (1, 2)),
    (12, (3, 3), (4, 4)),
    (10, (1, 2), (2, 5)),
)
NOT_NEGATIVE: tuple[Geometry, ...] = ((10, (1, 1), (2, 2)), (10, (2, 2), (3, 3)), (9, (3, 3), (2, 2)))


def convolution(op: str, kind: str, geometry: Geometry) -> tuple[bytes, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the model, an image, and the outputs of the bias alone."""
    rng = np.random.default_rng(3)
    size, kernel, strides = geometry
    h, w = (-(-size // stride) for stride in strides)
    shape = (2, *kernel, 3) if op == "CONV_2D" else (1, *kernel, 3)
    channels = 2 if op == "CONV_2D" else 3
    table = "Conv2DOptions" if op == "CONV_2D" else "DepthwiseConv2DOptions"
    options: dict[str, Any] = {"padding": 0, "stride_h": strides[0], "stride_w": strides[1]}
    options |= {"dilation_h_factor": 1, "dilation_w_factor": 1}
    options |= {} if op == "CONV_2D" else {"depth_multiplier": 1}
    if kind == "float32":
        x, y = T(kind, (1, size, size, 3)), T(kind, (1, h, w, channels))
        value = rng.standard_normal(channels).astype(np.float32)
        weights = T(kind, shape, value=rng.standard_normal(shape))
        bias, alone = T(kind, (channels,), value=value), value
        image = rng.standard_normal(x.shape).astype(np.float32)
    else:
        x, y = T(kind, (1, size, size, 3), 0.5, 7), T(kind, (1, h, w, channels), 0.25, -3)
        weights = T(kind, shape, 0.5, 0, value=rng.integers(-100, 100, shape))
        value = rng.integers(-60, 60, channels)
        bias = T("int32", (channels,), 0.25, 0, value=value)
        alone = (value - 3).astype(kind)
        image = rng.integers(-128, 128, x.shape).astype(kind)
    model = build(op, [x, weights, bias], [y], (table, options), version=3)
    return model, image, np.broadcast_to(alone, tuple(y.shape))


def run(model: bytes, profile: str, image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return run_once(Interpreter(model_content=model, profile=profile), [image])[0]


@each("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@each("kind", ["int8", "float32"])
@each("geometry", NEGATIVE)
def test_negative_padding_leaves_the_bias(op: str, kind: str, geometry: Geometry) -> None:
    model, image, alone = convolution(op, kind, geometry)
    for profile in PROFILES:
        assert (run(model, profile, image) == alone).all(), profile
    for profile in RIGHT:
        assert (run(model, profile, image) != alone).any(), profile


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("geometry", NOT_NEGATIVE)
def test_other_padding_is_right(op: str, geometry: Geometry) -> None:
    model, image, _ = convolution(op, "int8", geometry)
    for profile in PROFILES:
        assert (run(model, profile, image) == run(model, "litert-xnnpack", image)).all(), profile
