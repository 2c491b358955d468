"""ADD, SUB, MUL, DIV and the other operators of two inputs against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.parameters import PAIRS, floats, quantized, scale
from support.single_op import T, allocate, assert_same, build, draw, tflq
from support.sweeping import few
from tflq.errors import ModelError, UndefinedResultError, UnsupportedError

CODES = ("int8", "uint8", "int16")


def options(op, activation, **more):
    return f"{op.title()}Options", {"fused_activation_function": activation, **more}


@pytest.mark.parametrize("type_", CODES)
@pytest.mark.parametrize("op", few(["ADD", "SUB", "MUL"], "ADD", "MUL"))
def test_quantized(op, type_):
    rng = np.random.default_rng(1)
    for k in range(24):
        first, second = PAIRS[k % len(PAIRS)]
        a, b = quantized(rng, type_, first), quantized(rng, type_, second)
        y = quantized(rng, type_, np.broadcast_shapes(first, second), -8, 0)
        more = {} if op == "MUL" else {"pot_scale_int16": False}
        assert_same(build(op, [a, b], [y], options(op, k % 4, **more)), [draw(rng, a), draw(rng, b)], (op, a, b, y))


@pytest.mark.parametrize("op", ["ADD", "SUB"])
def test_powers_of_two(op):
    """int16 by shifts; ties are everywhere."""
    rng = np.random.default_rng(2)
    for shift in range(0, 10, 3):
        fine, coarse = T("int16", (300,), 2.0**-14), T("int16", (300,), 2.0 ** -(14 - shift))
        for a, b in ((fine, coarse), (coarse, fine)):
            model = build(op, [a, b], [coarse], options(op, 0, pot_scale_int16=True))
            assert_same(model, [draw(rng, a), draw(rng, b)], (op, shift))


@pytest.mark.parametrize("type_", few(CODES, "int8"))
def test_quantized_division(type_):
    """Dividends of zero, of either sign, and saturated quotients."""
    rng = np.random.default_rng(3)
    for k in range(16):
        first, second = ((400,), (400,)) if k < 4 else PAIRS[k % 7]
        a, b = quantized(rng, type_, first), quantized(rng, type_, second)
        y = quantized(rng, type_, np.broadcast_shapes(first, second), -8, 4)
        x, divisor = np.array(draw(rng, a)), np.array(draw(rng, b))
        x.flat[:1] = a.zero_point
        divisor[divisor == b.zero_point] = (b.zero_point + 1) % 100
        assert_same(build("DIV", [a, b], [y], options("DIV", k % 4)), [x, divisor], (a, b, y))


NUMBERS = {
    "ADD": ("float32", "float16", "int32", "int64", "int16"),
    "SUB": ("float32", "int32", "int64"),
    "MUL": ("float32", "float16", "int32", "uint32", "int64", "int16"),
    "DIV": ("float32", "int32"),
}


@each(("op", "type_"), [(op, t) for op, types in NUMBERS.items() for t in types])
def test_numbers(op, type_):
    """Plain arithmetic: it wraps, it clamps, and NaN passes."""
    rng = np.random.default_rng(4)
    for k, (first, second) in enumerate(PAIRS):
        a, b, y = T(type_, first), T(type_, second), T(type_, np.broadcast_shapes(first, second))
        x = [floats(rng, first), floats(rng, second)] if type_ == "float32" else [draw(rng, a), draw(rng, b)]
        if op == "DIV" and type_ == "int32":
            x[1] = np.where(x[1] == 0, 3, x[1] >> (k * 3)).astype(np.int32) | np.int32(1)
        assert_same(build(op, [a, b], [y], options(op, k % 4)), x, (op, a, b))


def test_complex():
    rng = np.random.default_rng(5)
    a = T("complex64", (2, 5))
    assert_same(build("MUL", [a, a], [a], options("MUL", 0)), [draw(rng, a), draw(rng, a)])


PLAIN = {
    "MAXIMUM": ("float32", "float16", "uint8", "int8", "int16", "int32", "int64"),
    "MINIMUM": ("float32", "float16", "uint8", "int8", "int16", "int32", "int64"),
    "SQUARED_DIFFERENCE": ("float32", "int32"),
    "FLOOR_MOD": ("float32", "int64", "int32", "int16", "int8"),
    "LOGICAL_AND": ("bool",),
    "LOGICAL_OR": ("bool",),
}


@each(("op", "type_"), [(op, t) for op, types in PLAIN.items() for t in types])
def test_plain(op, type_):
    rng = np.random.default_rng(6)
    for first, second in PAIRS:
        a, b = T(type_, first), T(type_, second)
        x = [floats(rng, first), np.flip(floats(rng, second))] if type_ == "float32" else [draw(rng, a), draw(rng, b)]
        if op == "FLOOR_MOD" and type_ != "float32":
            x[1] = np.where(x[1] == 0, 3, x[1]).astype(x[1].dtype)
        model = build(op, [a, b], [T(type_, np.broadcast_shapes(first, second))])
        assert_same(model, [np.ascontiguousarray(v) for v in x], (op, a, b))


@pytest.mark.parametrize("type_", ["float32", "int32", "int16", "int8"])
def test_floor_div(type_):
    rng = np.random.default_rng(7)
    a = T(type_, (60,))
    x, divisor = draw(rng, a), draw(rng, a)
    divisor = np.where(divisor == 0, 3, divisor).astype(divisor.dtype)
    assert_same(build("FLOOR_DIV", [a, a], [a]), [x, divisor])


@pytest.mark.parametrize("type_", ["float32", "int32"])
def test_pow(type_):
    """By libm, and by multiplication where one whole exponent serves all."""
    rng = np.random.default_rng(8)
    base = rng.uniform(0, 6, (4, 5)) if type_ == "float32" else rng.integers(-6, 6, (4, 5))
    for exponent in (
        rng.uniform(-3, 3, (4, 5)) if type_ == "float32" else rng.integers(0, 6, (4, 5)),
        np.array([3]),
        np.array([7]),
        np.array([1]),
        np.array([0]),
    ):
        x = [np.asarray(v).astype(type_) for v in (base, exponent)]
        assert_same(build("POW", [T(type_, v.shape) for v in x], [T(type_, (4, 5))]), x, exponent)


def test_squared_difference_int8():
    rng = np.random.default_rng(9)
    for first, second in PAIRS:
        a, b = quantized(rng, "int8", first), quantized(rng, "int8", second)
        y = quantized(rng, "int8", np.broadcast_shapes(first, second))
        assert_same(build("SQUARED_DIFFERENCE", [a, b], [y]), [draw(rng, a), draw(rng, b)], (a, b, y))


def test_refusals():
    """What the source refuses, or aborts on."""
    a, b = T("int8", (2, 3), 0.5), T("int8", (4,), 0.5)
    with pytest.raises(ModelError, match="broadcast"):
        allocate(build("ADD", [a, b], [a], options("ADD", 0)))
    with pytest.raises(UndefinedResultError, match="real multiplier"):
        allocate(build("ADD", [a, a], [T("int8", (2, 3), 1e-9)], options("ADD", 0)))
    with pytest.raises(ModelError, match="zero point"):
        allocate(build("MUL", [T("int16", (3,), 0.1, 5)] * 2, [T("int16", (3,), 0.1)], options("MUL", 0)))
    with pytest.raises(UnsupportedError, match="nearest"):
        allocate(build("SUB", [T("float64", (3,))] * 2, [T("float64", (3,))], options("SUB", 0)))
    with pytest.raises(UndefinedResultError, match="zero"):
        tflq(
            build("DIV", [T("int32", (3,))] * 2, [T("int32", (3,))], options("DIV", 0)),
            [np.ones(3, np.int32), np.array([1, 0, 1], np.int32)],
        )


def test_no_broadcast_by_shifts():
    """The power-of-two form of ADD walks its operands side by side."""
    a, b = T("int16", (2, 3), 2.0**-12), T("int16", (3,), 2.0**-12)
    with pytest.raises(ModelError, match="shapes"):
        allocate(build("ADD", [a, b], [a], options("ADD", 0, pot_scale_int16=True)))


def test_scale_of_large_tensors():
    """The compiled loops over a tensor larger than any block."""
    rng = np.random.default_rng(10)
    a, b = T("int8", (1, 64, 64, 33), scale(rng), 3), T("int8", (33,), scale(rng), -5)
    y = T("int8", (1, 64, 64, 33), scale(rng, -7, -3), 1)
    assert_same(build("ADD", [a, b], [y], options("ADD", 1)), [draw(rng, a), draw(rng, b)])
