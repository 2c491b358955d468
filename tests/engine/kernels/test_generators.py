"""FILL, RANGE, ZEROS_LIKE, CUMSUM, BITWISE_XOR, RIGHT_SHIFT against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.single_op import T, assert_same, build, draw, tflq
from tflq.errors import ModelError

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]


@each("type_", ["float32", "uint8", "int8", "int16", "int32", "int64", "bool"])
@each("index", ["int32", "int64"])
def test_fill(type_: str, index: str) -> None:
    rng, value = np.random.default_rng(51), T(type_, ())
    for shape in ((3,), (2, 3, 1), ()):
        dims = T(index, (len(shape),), value=shape)
        if shape:
            assert_same(build("FILL", [dims, value], [T(type_, ())]), [draw(rng, value)])
        computed = build("FILL", [T(index, (len(shape),)), value], [T(type_, ())])
        if shape:
            assert_same(computed, [np.array(shape, index), draw(rng, value)])
        else:
            assert tflq(computed, [np.zeros(0, index), draw(rng, value)])[0].shape == ()


def test_fill_refuses_a_negative_size() -> None:
    with pytest.raises(ModelError):
        tflq(build("FILL", [T("int32", (1,), value=[-1]), T("int8", ())], [T("int8", ())]), [np.array(1, np.int8)])


@pytest.mark.parametrize("type_", ["float32", "int32", "int64"])
def test_range(type_: str) -> None:
    rng = np.random.default_rng(52)
    computed = build("RANGE", [T(type_, ())] * 3, [T(type_, ())])
    for _ in range(40):
        start, delta = rng.uniform(-20, 20), rng.uniform(0.6, 3) * rng.choice([-1, 1])
        limit = start + delta * rng.uniform(2, 30)
        values = [np.array(v, type_) for v in (start, limit, round(delta) if type_ != "float32" else delta)]
        assert_same(computed, values, values)
        constant = build("RANGE", [T(type_, (), value=v) for v in values], [T(type_, ())])
        assert_same(constant, [], values)


@pytest.mark.parametrize("values", [(0, 5, 0), (0, 5, -1), (5, 0, 1)])
def test_range_refuses(values: tuple[int, ...]) -> None:
    with pytest.raises(ModelError):
        tflq(build("RANGE", [T("int32", (), value=v) for v in values], [T("int32", ())]), [])


@pytest.mark.parametrize("type_", ["float32", "int32", "int64"])
def test_zeros_like(type_: str) -> None:
    x = T(type_, (2, 3))
    assert_same(build("ZEROS_LIKE", [x], [T(type_, ())]), [draw(np.random.default_rng(53), x)])


@each("type_", ["float32", "int32", "int64"])
@each("exclusive", [False, True])
@each("reverse", [False, True])
def test_cumsum(type_: str, exclusive: bool, reverse: bool) -> None:
    rng = np.random.default_rng(54)
    for shape in ((9,), (3, 17), (2, 5, 33), (2, 3, 2, 5)):
        x = T(type_, shape)
        for axis in range(-len(shape), len(shape)):
            options = ("CumsumOptions", {"exclusive": exclusive, "reverse": reverse})
            model = build("CUMSUM", [x, T("int32", (1,), value=[axis])], [T(type_, ())], options)
            values = draw(rng, x)
            if type_ == "float32":
                values.reshape(-1)[:2] = -0.0
            assert_same(model, [values], (shape, axis))


@each("type_", INTEGERS)
@each("op", ["BITWISE_XOR", "RIGHT_SHIFT"])
def test_bits(type_: str, op: str) -> None:
    rng = np.random.default_rng(55)
    shapes = [
        ((2, 3), (2, 3)),
        ((2, 3), (3,)),
        ((4, 1), (1, 5)),
        ((), (3,)),
        ((2, 1, 3, 1), (2, 1, 4)),
        ((1, 2, 1, 2, 1),) * 2,
        ((3, 1, 1, 1, 2), (1,)),
    ]
    name = "BitwiseXorOptions" if op == "BITWISE_XOR" else "RightShiftOptions"
    for left, right in shapes:
        a, b = T(type_, left), T(type_, right)
        model = build(op, [a, b], [T(type_, ())], (name, {}))
        assert_same(model, [draw(rng, a), draw(rng, b)], (left, right))
        small = rng.integers(0, 9, right).astype(type_)
        assert_same(model, [draw(rng, a), np.asarray(small)], (left, right))


@pytest.mark.parametrize("shapes", [((2,), (3,)), ((1, 1, 1, 1, 1, 1, 1, 1, 2), (1,))])
def test_bits_refuse(shapes: tuple[tuple[int, ...], ...]) -> None:
    model = build("BITWISE_XOR", [T("int8", s) for s in shapes], [T("int8", ())], ("BitwiseXorOptions", {}))
    with pytest.raises(ModelError, match="broadcast"):
        tflq(model, [np.zeros(s, np.int8) for s in shapes])
