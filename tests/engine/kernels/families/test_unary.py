"""Operators of one input against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.parameters import floats, quantized, scale, zero_point
from support.running import run_once
from support.single_op import T, allocate, assert_same, build, draw, tflq
from tflq import Interpreter
from tflq.errors import ModelError, UndefinedResultError

FLOAT = (
    "NEG",
    "SQUARE",
    "FLOOR",
    "SIN",
    "COS",
    "EXP",
    "LOG",
    "ABS",
    "SQRT",
    "RSQRT",
    "LOGISTIC",
    "TANH",
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "RELU_0_TO_1",
    "HARD_SWISH",
)


@each("size", [40, 3000])
@each("op", FLOAT)
def test_float(op, size):
    """Short arrays and long ones, which take another way to libm."""
    x = floats(np.random.default_rng(1), (size,), 20)
    assert_same(build(op, [T("float32", (size,))], [T("float32", (size,))]), [x])


@pytest.mark.parametrize("profile", ["litert-ref", "tflite-2.14-opt"])
def test_a_scalar_gives_a_scalar(profile):
    found = run_once(
        Interpreter(model_content=build("FLOOR", [T("float32", ())], [T("float32", ())]), profile=profile),
        [np.float32(1.5)],
    )[0]
    assert (np.shape(found), float(found)) == ((), 1.0)


@pytest.mark.parametrize("op", ["FLOOR", "SIN", "COS", "NEG"])
def test_half(op):
    x = floats(np.random.default_rng(2), (100,), 20).astype(np.float16)
    assert_same(build(op, [T("float16", (100,))], [T("float16", (100,))]), [x])


@pytest.mark.parametrize(
    ("op", "type_"),
    [
        ("NEG", "int8"),
        ("NEG", "int16"),
        ("NEG", "int32"),
        ("NEG", "int64"),
        ("ABS", "int32"),
        ("ABS", "int16"),
        ("LOGICAL_NOT", "bool"),
    ],
)
def test_integer(op, type_):
    rng = np.random.default_rng(3)
    x = T(type_, (60,))
    values = draw(rng, x)
    if type_ != "bool":
        values[0] = np.iinfo(type_).min
    assert_same(build(op, [x], [x]), [values])


RECTIFIERS = {
    "RELU": ("int8", "uint8", "int16"),
    "RELU6": ("int8", "uint8", "int16"),
    "RELU_N1_TO_1": ("int8", "uint8"),
    "RELU_0_TO_1": ("int8", "uint8"),
    "HARD_SWISH": ("int8", "uint8"),
}
TABLES = {
    "EXP": ("int8", "int16"),
    "LOG": ("int8", "int16"),
    "ABS": ("int8", "int16"),
    "SQRT": ("int8", "int16"),
    "RSQRT": ("int8", "int16"),
    "TANH": ("int8", "uint8"),
    "GELU": ("int8", "uint8", "int16"),
}


@each(("op", "type_"), [(op, t) for op, types in RECTIFIERS.items() for t in types])
def test_rectifiers(op, type_):
    """All codes of many quantizations."""
    rng = np.random.default_rng(4)
    for k in range(12):
        size = 600 if type_ != "int16" else 3000
        x = quantized(rng, type_, (size,))
        y = T(type_, (size,), x.scale if k == 0 else x.scale * scale(rng, -2, 2), zero_point(rng, type_))
        assert_same(build(op, [x], [y]), [draw(rng, x)], (op, x, y))


@each(("op", "type_"), [(op, t) for op, types in TABLES.items() for t in types])
def test_tables(op, type_):
    rng = np.random.default_rng(5)
    low, high, size = (-8, -2, 600) if type_ != "int16" else (-16, -8, 4000)
    low, high = (-14, -12) if (op, type_) == ("EXP", "int16") else (low, high)
    for k in range(8):
        x, y = quantized(rng, type_, (size,), low, high), quantized(rng, type_, (size,), low, high)
        codes = draw(rng, x)
        if op in ("SQRT", "RSQRT"):
            codes = np.maximum(codes, x.zero_point).astype(codes.dtype)
        options = ("GeluOptions", {"approximate": bool(k % 2)}) if op == "GELU" else None
        assert_same(build(op, [x], [y], options), [codes], (op, x, y))


@pytest.mark.parametrize("type_", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
def test_sigmoids(op, type_):
    """int16: power-of-two scales take a way of their own."""
    rng = np.random.default_rng(6)
    unit = {"LOGISTIC": 1 / 256, "TANH": 1 / 128}[op] if type_ != "int16" else 2.0**-15
    for k in range(8):
        x = quantized(rng, type_, (2000,), *((-8, -2) if type_ != "int16" else (-16, -8)))
        x = T(type_, (2000,), 2.0 ** -(10 + k), x.zero_point) if k < 4 else x
        y = T(type_, (2000,), unit, {"int8": -128, "uint8": 0, "int16": 0}[type_])
        assert_same(build(op, [x], [y]), [draw(rng, x)], (op, x))


@pytest.mark.parametrize(("type_", "slope"), [("int8", "int8"), ("uint8", "uint8"), ("int16", "int8")])
def test_prelu(type_, slope):
    rng = np.random.default_rng(7)
    for shape, alpha in (
        ((2, 3, 5), (2, 3, 5)),
        ((2, 3, 5), (5,)),
        ((1, 4, 4, 3), (1, 1, 3)),
        ((4,), ()),
        ((9,), (9,)),
    ):
        x, a, y = quantized(rng, type_, shape), quantized(rng, slope, alpha), quantized(rng, type_, shape)
        assert_same(build("PRELU", [x, a], [y]), [draw(rng, x), draw(rng, a)], (x, a, y))
        if type_ == "int8":
            real = [floats(rng, shape), floats(rng, alpha)]
            assert_same(build("PRELU", [T("float32", shape), T("float32", alpha)], [T("float32", shape)]), real)


def test_refusals():
    codes = T("int8", (4,), 0.5, 3)
    with pytest.raises(ModelError, match="1/256"):
        allocate(build("LOGISTIC", [codes], [T("int8", (4,), 0.01)]))
    with pytest.raises(ModelError, match="zero point"):
        allocate(build("TANH", [T("int16", (4,), 0.5, 1)], [T("int16", (4,), 2.0**-15)]))
    with pytest.raises(ModelError, match="broadcast"):
        allocate(build("PRELU", [codes, T("int8", (3, 4), 0.5)], [codes]))
    for op in ("SQRT", "RSQRT"):
        with pytest.raises(UndefinedResultError, match="x >= 0"):
            tflq(build(op, [codes], [codes]), [np.array([3, 4, 2, 5], np.int8)])
