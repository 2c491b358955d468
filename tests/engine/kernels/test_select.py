"""ARG_MAX, ARG_MIN, TOPK_V2 and CAST against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support.single_op import T, allocate, assert_same, build, draw, tflq
from support.sweeping import few
from tflq.errors import ModelError


@pytest.mark.parametrize("type_", ["float32", "uint8", "int8", "int32", "bool"])
@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
def test_extrema(op, type_):
    """Ties, NaN between numbers, and rows of nothing but NaN."""
    rng = np.random.default_rng(1)
    table = {"ARG_MAX": "ArgMaxOptions", "ARG_MIN": "ArgMinOptions"}[op]
    for shape, axis in (((3, 50), 1), ((3, 50), 0), ((2, 3, 4, 5), -2), ((70,), 0), ((4, 1), 1)):
        for index in ("int32", "int64"):
            x = T(type_, shape)
            values = draw(rng, x)
            if type_ in ("uint8", "int8"):
                values = (values // 20).astype(values.dtype)
            if type_ == "float32":
                values = np.round(values)
                values.flat[::7] = np.nan
                if index == "int64":
                    values[...] = np.nan
                    values.flat[3::9] = -np.inf if op == "ARG_MAX" else np.inf
            y = T(index, shape[: axis % len(shape)] + shape[axis % len(shape) + 1 :])
            options = (table, {"output_type": {"int32": 2, "int64": 4}[index]})
            assert_same(build(op, [x, T(index, (1,), value=[axis])], [y], options), [values], (op, x, axis))


@pytest.mark.parametrize("type_", few(["float32", "uint8", "int8", "int16", "int32", "int64"], "float32", "int8"))
def test_topk(type_):
    rng = np.random.default_rng(2)
    for shape, k in (((3, 20), 5), ((3, 20), 20), ((9,), 1), ((2, 3, 4), 0)):
        values = draw(rng, T(type_, shape))
        if type_ == "float32":
            values = np.round(values)
            values.flat[::5] = np.nan
            values.flat[1:3] = -0.0, 0.0
        else:
            values = (values % 5).astype(values.dtype)
        best = (*shape[:-1], k)
        model = build("TOPK_V2", [T(type_, shape), T("int32", (), value=k)], [T(type_, best), T("int32", best)])
        assert_same(model, [values], (type_, shape, k))


TYPES = (
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "bool",
    "float16",
    "float32",
    "float64",
    "complex64",
)


@pytest.mark.parametrize("source", few(TYPES, "int8", "int64", "bool", "float32"))
def test_cast(source):
    """To every type: values beyond it, NaN and infinities among them."""
    rng = np.random.default_rng(3)
    if source in ("float16", "float32", "float64", "complex64"):
        with np.errstate(over="ignore"):
            values = (rng.uniform(-1, 1, 64) * 10.0 ** rng.integers(0, 12, 64)).astype(source)
        values[:7] = [0, np.nan, np.inf, -np.inf, 1.5, -2.5, -0.5]
        if source != "float16":
            values[7:10] = [2.0**31, -(2.0**31) - 1, 2.0**63]
    else:
        values = draw(rng, T(source, (64,)))
    for target in TYPES:
        assert_same(build("CAST", [T(source, (64,))], [T(target, (64,))]), [values], (source, target))


@pytest.mark.parametrize("narrow", ["int4", "int2", "uint4"])
def test_cast_narrow(narrow):
    rng = np.random.default_rng(4)
    values = rng.uniform(-20, 20, 33).astype(np.float32)
    values[:3] = np.nan, np.inf, -np.inf
    assert_same(build("CAST", [T("float32", (33,))], [T(narrow, (33,))]), [values])
    assert_same(build("CAST", [T(narrow, (33,), value=rng.integers(0, 2, 33))], [T("float32", (33,))]), [])


def test_bfloat16():
    """Half to even, and back without loss."""
    ties = np.array([1.00390625, 1.01171875, -1.00390625, np.inf, 3.3895314e38], np.float32)  # halves of a unit
    (codes,) = tflq(build("CAST", [T("float32", (5,))], [T("bfloat16", (5,))]), [ties])
    assert codes.view(np.uint16).tolist() == [0x3F80, 0x3F82, 0xBF80, 0x7F80, 0x7F7F]


def test_refusals():
    x = T("float32", (2, 3))
    with pytest.raises(ModelError, match="axis"):
        allocate(build("ARG_MAX", [x, T("int32", (1,), value=[2])], [T("int32", (2,))]))
    with pytest.raises(ModelError, match="larger"):
        allocate(build("TOPK_V2", [x, T("int32", (), value=4)], [T("float32", (2, 4)), T("int32", (2, 4))]))
