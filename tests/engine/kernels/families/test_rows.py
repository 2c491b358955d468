"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support.parameters import floats, quantized
from support.single_op import FULL, T, allocate, assert_same, build, draw, tflq
from support.sweeping import few
from tflq.errors import ModelError, UndefinedResultError

SHAPES = ((3, 40), (5, 100), (64,), (2, 3, 4, 5), (7, 1), (1, 300))


def softmax(x, y, beta, version=1):
    return build("SOFTMAX", [x], [y], ("SoftmaxOptions", {"beta": beta}), version)


@pytest.mark.parametrize("type_", few(["int8", "uint8", "int16"], "int8", "int16"))
def test_softmax(type_):
    rng = np.random.default_rng(1)
    unit, zero = (1 / 256, {"int8": -128, "uint8": 0}[type_]) if type_ != "int16" else (1 / 32768, 0)
    for k in range(18):
        x = quantized(rng, type_, SHAPES[k % 6], *((-7, 2) if type_ != "int16" else (-14, -6)))
        y = T(type_, x.shape, unit, zero)
        if type_ != "int16" and k % 5 == 4:
            y = T("int16", x.shape, 1 / 32768)
        assert_same(softmax(x, y, (1.0, 0.5, 2.3)[k % 3]), [draw(rng, x)], (x, y))


@pytest.mark.parametrize("type_", ["int8", "uint8", "int16"])
def test_softmax_version_4_is_the_full_resolvers(type_):
    rng = np.random.default_rng(4)
    unit, zero = (1 / 256, {"int8": -128, "uint8": 0}[type_]) if type_ != "int16" else (1 / 32768, 0)
    for k in range(12):
        x = quantized(rng, type_, SHAPES[k % 6], *((-7, 2) if type_ != "int16" else (-14, -6)))
        y = T(type_, x.shape, unit, zero)
        assert_same(softmax(x, y, (1.0, 0.5, 2.3)[k % 3], 4), [draw(rng, x)], (x, y), FULL)


@pytest.mark.parametrize("op", ["SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"])
def test_float(op):
    rng = np.random.default_rng(2)
    for shape in (*SHAPES, (40, 12)):
        x = floats(rng, shape) if shape == (40, 12) else rng.uniform(-10, 10, shape).astype(np.float32)
        options = ("SoftmaxOptions", {"beta": 0.7}) if op == "SOFTMAX" else None
        assert_same(build(op, [T("float32", shape)], [T("float32", shape)], options), [x], shape)


def test_half():
    x = np.random.default_rng(3).uniform(-10, 10, (5, 30)).astype(np.float16)
    assert_same(softmax(T("float16", x.shape), T("float16", x.shape), 1.0), [x])


@pytest.mark.parametrize("type_", few(["int8", "uint8"], "int8"))
def test_log_softmax(type_):
    rng = np.random.default_rng(4)
    for shape in SHAPES:
        x = quantized(rng, type_, shape, -7, 2)
        y = T(type_, shape, 16 / 256, {"int8": 127, "uint8": 255}[type_])
        assert_same(build("LOG_SOFTMAX", [x], [y]), [draw(rng, x)], x)


@pytest.mark.parametrize("type_", ["int8", "uint8"])
def test_l2_normalization(type_):
    """Rows of zeros, and of ones, are what the inverse root treats apart."""
    rng = np.random.default_rng(5)
    for k, shape in enumerate(SHAPES * 2):
        x, y = quantized(rng, type_, shape), T(type_, shape, 1 / 128, {"int8": 0, "uint8": 128}[type_])
        codes = draw(rng, x)
        if k >= len(SHAPES):
            codes = np.clip(codes, x.zero_point, x.zero_point + k % 2).astype(codes.dtype)
        assert_same(build("L2_NORMALIZATION", [x], [y]), [codes], x)


def test_refusals():
    x = T("int8", (1, 600), 1e-6)
    with pytest.raises(ModelError, match="zero point"):
        allocate(softmax(x, T("int8", (1, 600), 1 / 256, 0), 1.0))
    with pytest.raises(UndefinedResultError, match="512"):
        tflq(softmax(x, T("int8", (1, 600), 1 / 256, -128), 1.0), [np.zeros((1, 600), np.int8)])
    with pytest.raises(ModelError, match="16/256"):
        allocate(build("LOG_SOFTMAX", [x], [T("int8", (1, 600), 0.5, 127)]))
