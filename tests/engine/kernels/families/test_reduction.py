"""MEAN, SUM and the REDUCE operators against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support.parameters import SPECIAL, scale, zero_point
from support.single_op import T, allocate, assert_same, build, draw
from tflq.errors import ModelError, UndefinedResultError

#: Shapes and axes: adjoining, apart, negative, repeated, none, all, of a scalar, out of order.
CASES = (
    ((2, 3, 4, 5), (1, 2)),
    ((2, 3, 4, 5), (0, 2)),
    ((2, 3, 4, 5), (-1,)),
    ((2, 3, 4, 5), (0, 1, 2, 3)),
    ((7,), (0,)),
    ((3, 4), ()),
    ((2, 3, 4, 5), (1, 1, -3)),
    ((), ()),
    ((1, 8, 8, 6), (2, 1)),
    ((2, 3, 2, 2, 3), (1, 3, 4)),
    ((40, 3), (0,)),
    ((1, 1, 300), (2,)),
)
TYPES = {
    "REDUCE_MAX": ("float32", "int32", "int64", "uint8", "int8", "int16", "bool"),
    "REDUCE_MIN": ("float32", "int32", "int64", "uint8", "int8", "int16", "bool"),
    "REDUCE_ANY": ("bool",),
    "REDUCE_ALL": ("bool",),
    "REDUCE_PROD": ("float32", "int32", "int64", "int8", "int16"),
    "SUM": ("float32", "int32", "int64", "uint8", "int8"),
    "MEAN": ("float32", "int32", "int64", "uint8", "int8", "int16"),
}


def model(op, x, axes, y, keep=False):
    indices = T("int32", (len(axes),), value=np.array(axes, np.int32))
    return build(op, [x, indices], [y], ("ReducerOptions", {"keep_dims": keep}))


def output_shape(shape, axes, keep):
    found = {a % len(shape) for a in axes} if shape else set()
    return tuple(1 if i in found else n for i, n in enumerate(shape) if keep or i not in found)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("op", "type_"), [(op, t) for op, types in TYPES.items() for t in types])
def test_reductions(op, type_, keep):
    rng = np.random.default_rng(1)
    for k, (shape, axes) in enumerate(CASES):
        x, y = T(type_, shape), T(type_, output_shape(shape, axes, keep))
        if type_ in ("uint8", "int8", "int16") and not (op == "REDUCE_PROD" and k % 2):
            x, y = (_quantized(rng, op, t, type_) for t in (x, y))
            if op in ("REDUCE_MAX", "REDUCE_MIN"):
                y = T(type_, y.shape, x.scale, x.zero_point)
        values = draw(rng, x)
        if type_ == "float32" and values.size > len(SPECIAL) and k % 3 == 1:
            values.flat[k % 2 : k % 2 + len(SPECIAL)] = SPECIAL
        assert_same(model(op, x, axes, y, keep), [values], (op, x, axes, y))


def _quantized(rng, op, tensor, type_):
    low, high = (-4, -3) if op == "REDUCE_PROD" and type_ == "int8" else (-8, -2)
    return T(type_, tensor.shape, scale(rng, low, high), zero_point(rng, type_))


def test_large_mean():
    """More elements than the multiplier's room can take in one shift."""
    rng = np.random.default_rng(2)
    for shape, axes in (((1, 300, 300, 2), (1, 2)), ((5000, 3), (0,))):
        x, y = T("int8", shape, 0.1, -7), T("int8", output_shape(shape, axes, False), 0.013, 5)
        assert_same(model("MEAN", x, axes, y), [draw(rng, x)], shape)


def test_refusals():
    x = T("int8", (2, 3), 0.5)
    with pytest.raises(ModelError, match="axis"):
        allocate(model("MEAN", x, (2,), T("int8", (2,), 0.5)))
    with pytest.raises(ModelError, match="scale"):
        allocate(model("REDUCE_MAX", x, (1,), T("int8", (2,), 0.25)))
    with pytest.raises(UndefinedResultError, match="unwritten"):
        allocate(model("SUM", T("int16", (2, 3), 0.5), (1,), T("int16", (2,), 0.5)))
