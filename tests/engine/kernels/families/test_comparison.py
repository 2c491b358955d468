"""Comparisons against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.parameters import PAIRS, floats, quantized
from support.single_op import T, allocate, assert_same, build, draw
from tflq.errors import ModelError

OPS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")


@each("type_", ["int8", "uint8"])
@each("op", OPS)
def test_codes(op, type_):
    """Different scales and zero points; equal ones, so that equality happens."""
    rng = np.random.default_rng(1)
    for k, (first, second) in enumerate(PAIRS):
        a, b = quantized(rng, type_, first), quantized(rng, type_, second)
        if k % 2:
            b = T(type_, second, a.scale, a.zero_point)
        x = [draw(rng, a), draw(rng, b)]
        assert_same(build(op, [a, b], [T("bool", np.broadcast_shapes(first, second))]), x, (op, a, b))


NUMBERS = [(op, type_) for op in OPS for type_ in ("float32", "float16", "int32", "int64", "int16")]


@each(("op", "type_"), [*NUMBERS, ("EQUAL", "bool"), ("NOT_EQUAL", "bool")])
def test_numbers(op, type_):
    if type_ == "int16" and op == "NOT_EQUAL":
        with pytest.raises(ModelError, match="unwritten"):
            allocate(build(op, [T("int16", (3,))] * 2, [T("bool", (3,))]))
        return
    rng = np.random.default_rng(2)
    for first, second in PAIRS:
        a, b = T(type_, first), T(type_, second)
        x = [floats(rng, first), floats(rng, second)] if type_ == "float32" else [draw(rng, a), draw(rng, b)]
        if first == second:
            x[1] = np.where(rng.integers(0, 2, first), x[0], x[1]).astype(x[1].dtype)
        assert_same(build(op, [a, b], [T("bool", np.broadcast_shapes(first, second))]), x, (op, a, b))


@pytest.mark.parametrize("op", ["EQUAL", "NOT_EQUAL"])
def test_int16_codes(op):
    rng = np.random.default_rng(3)
    a, b = quantized(rng, "int16", (300,)), quantized(rng, "int16", (300,))
    assert_same(build(op, [a, b], [T("bool", (300,))]), [draw(rng, a), draw(rng, b)])
