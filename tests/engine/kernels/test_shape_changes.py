"""RESHAPE, SQUEEZE, EXPAND_DIMS, SHAPE, RANK, TRANSPOSE, BITCAST, TILE, BROADCAST_TO, BROADCAST_ARGS against LiteRT."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from support.each import each
from support.single_op import T, assert_same, build, draw, tflq
from tflq.errors import ModelError, UndefinedResultError, UnsupportedError

TYPES = ["float32", "uint8", "int8", "int16", "int32", "int64", "bool"]


def int32s(*values: int) -> T:
    return T("int32", (len(values),), value=values)


@each("type_", TYPES)
@each(
    ("given", "wanted"),
    [
        ((2, 3, 4), (4, 6)),
        ((2, 3, 4), (-1,)),
        ((2, 3, 4), (2, -1, 2)),
        ((1,), ()),
        ((), (1, 1)),
        ((6,), (6,)),
        ((1, 2, 1, 3, 2, 1), (3, 1, 2, 2)),
        ((0, 3), (-1, 3)),
        ((0, 3), (0, 7)),
        ((2, 0, 3), (0, -1)),
    ],
)
def test_reshape(type_: str, given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x, y = T(type_, given), T(type_, ())
    values = draw(rng, x)
    for model in (
        build("RESHAPE", [x, int32s(*wanted)], [y]),
        build("RESHAPE", [x, int32s(*wanted)], [y], ("ReshapeOptions", {"new_shape": np.array([1, 5], np.int32)})),
        build("RESHAPE", [x], [y], ("ReshapeOptions", {"new_shape": np.array(wanted or (0,), np.int32)})),
    ):
        if values.size:
            assert_same(model, [values])
        else:  # the runtime's Python interface cannot hand empty tensors out
            (got,) = tflq(model, [values])
            assert got.size == 0
            assert got.ndim == len(wanted)


def test_reshape_by_a_shape_that_is_computed() -> None:
    x = T("int8", (2, 6))
    model = build("RESHAPE", [x, T("int32", (3,))], [T("int8", ())])
    values = draw(np.random.default_rng(2), x)
    for shape in ((3, 2, 2), (-1, 1, 4), (12, 1, -1)):
        assert_same(model, [values, np.array(shape, np.int32)], shape)


@pytest.mark.parametrize("wanted", [(5,), (-1, -1), (-2, 3), (7, -1)])
def test_reshape_refuses(wanted: tuple[int, ...]) -> None:
    model = build("RESHAPE", [T("int8", (2, 3)), int32s(*wanted)], [T("int8", (6,))])
    with pytest.raises(ModelError):
        tflq(model, [np.zeros((2, 3), np.int8)])


@pytest.mark.parametrize(
    ("given", "axes"),
    [((1, 2, 1, 3), ()), ((1, 2, 1, 3), (0,)), ((1, 2, 1, 3), (2, -4)), ((1, 1), (0, 0)), ((2, 3), ()), ((1,), ())],
)
def test_squeeze(given: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = T("int16", given)
    model = build("SQUEEZE", [x], [T("int16", ())], ("SqueezeOptions", {"squeeze_dims": np.array(axes, np.int32)}))
    assert_same(model, [draw(np.random.default_rng(3), x)])


def test_squeeze_refuses_a_wider_dimension() -> None:
    options = ("SqueezeOptions", {"squeeze_dims": np.array([1], np.int32)})
    with pytest.raises(ModelError, match="dimension 1 to squeeze"):
        tflq(build("SQUEEZE", [T("int8", (1, 2))], [T("int8", (2,))], options), [np.zeros((1, 2), np.int8)])


@each("index", ["int32", "int64"])
@each("axis", [0, 1, 2, -1, -2, -3])
def test_expand_dims(axis: int, index: str) -> None:
    x = T("uint8", (3, 4), 0.5, 3)
    values = draw(np.random.default_rng(4), x)
    constant = build("EXPAND_DIMS", [x, T(index, (1,), value=[axis])], [T("uint8", (), 0.5, 3)])
    assert_same(constant, [values], axis)
    computed = build("EXPAND_DIMS", [x, T(index, (1,))], [T("uint8", (), 0.5, 3)])
    assert_same(computed, [values, np.array([axis], index)], axis)


def test_expand_dims_refuses_another_scale() -> None:
    model = build("EXPAND_DIMS", [T("int8", (2,), 0.5), int32s(0)], [T("int8", (1, 2), 0.25)])
    with pytest.raises(ModelError, match="scale"):
        tflq(model, [np.zeros(2, np.int8)])


@pytest.mark.parametrize(("number", "index"), [(2, "int32"), (4, "int64")])
@pytest.mark.parametrize("shape", [(2, 3, 4), (), (5,)])
def test_shape_and_rank(number: int, index: str, shape: tuple[int, ...]) -> None:
    x = T("float32", shape)
    values = draw(np.random.default_rng(5), x)
    if shape:
        assert_same(build("SHAPE", [x], [T(index, (len(shape),))], ("ShapeOptions", {"out_type": number})), [values])
    assert_same(build("RANK", [x], [T("int32", ())]), [values])


@pytest.mark.parametrize("type_", [*TYPES, "uint32", "float16"])
def test_transpose(type_: str) -> None:
    rng = np.random.default_rng(6)
    for rank in range(1, 7):
        shape = tuple(int(n) for n in rng.integers(1, 5, rank))
        order = rng.permutation(rank)
        order = np.where(rng.integers(0, 2, rank) == 1, order, order - rank)
        x = T(type_, shape)
        version = 4 if rank > 4 else 1
        model = build("TRANSPOSE", [x, int32s(*order)], [T(type_, ())], version=version)
        assert_same(model, [draw(rng, x)], (shape, order))


@pytest.mark.parametrize("order", [(0, 0), (0, 2), (0,)])
def test_transpose_refuses(order: tuple[int, ...]) -> None:
    with pytest.raises(ModelError):
        tflq(build("TRANSPOSE", [T("int8", (2, 3)), int32s(*order)], [T("int8", (3, 2))]), [np.zeros((2, 3), np.int8)])


@pytest.mark.parametrize(
    ("given", "shape", "wanted"),
    [
        ("float32", (2, 3), "int32"),
        ("int32", (2, 3), "float32"),
        ("int16", (3, 2), "int32"),
        ("int32", (3,), "int8"),
        ("uint8", (2, 4), "float32"),
        ("int64", (2,), "int16"),
        ("int8", (5,), "uint8"),
        ("float32", (), "uint8"),
    ],
)
def test_bitcast(given: str, shape: tuple[int, ...], wanted: str) -> None:
    x = T(given, shape)
    assert_same(build("BITCAST", [x], [T(wanted, ())], ("BitcastOptions", {})), [draw(np.random.default_rng(7), x)])


def test_bitcast_refuses_a_remainder() -> None:
    model = build("BITCAST", [T("int8", (3,))], [T("int32", ())], ("BitcastOptions", {}))
    with pytest.raises(ModelError, match="last dimension"):
        tflq(model, [np.zeros(3, np.int8)])


@each("type_", TYPES)
@each("index", ["int32", "int64"])
def test_tile(type_: str, index: str) -> None:
    rng = np.random.default_rng(8)
    for rank in range(1, 6):
        x = T(type_, tuple(int(n) for n in rng.integers(1, 4, rank)))
        times = rng.integers(1, 4, rank)
        values = draw(rng, x)
        assert_same(build("TILE", [x, T(index, (rank,), value=times)], [T(type_, ())]), [values], (x.shape, times))
        assert_same(build("TILE", [x, T(index, (rank,))], [T(type_, ())]), [values, times.astype(index)])


def test_tile_refuses_a_negative_multiplier() -> None:
    with pytest.raises(ModelError):
        tflq(build("TILE", [T("int8", (2,)), int32s(-1)], [T("int8", (2,))]), [np.zeros(2, np.int8)])


@each("type_", TYPES)
@each("index", ["int32", "int64"])
def test_broadcast_to(type_: str, index: str) -> None:
    rng = np.random.default_rng(9)
    for _ in range(6):
        rank = int(rng.integers(1, 7))
        wanted = rng.integers(1, 4, rank)
        own = int(rng.integers(0, rank + 1))
        shape = tuple(int(n) if rng.integers(0, 2) else 1 for n in wanted[rank - own :])
        x = T(type_, shape)
        model = build("BROADCAST_TO", [x, T(index, (rank,), value=wanted)], [T(type_, ())], version=3)
        assert_same(model, [draw(rng, x)], (shape, wanted))


def test_broadcast_to_refuses() -> None:
    model = build("BROADCAST_TO", [T("int8", (2,)), int32s(3)], [T("int8", (3,))], version=2)
    with pytest.raises(ModelError, match="broadcast"):
        tflq(model, [np.zeros(2, np.int8)])
    model = build("BROADCAST_TO", [T("int8", (2,)), int32s(2)], [T("int8", (2,))], version=1)
    with pytest.raises(UnsupportedError, match="versions 2 to 4"):
        tflq(model, [np.zeros(2, np.int8)])


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("a", "b"), [((2, 3), (3,)), ((1, 3), (2, 1)), ((4,), (5, 1, 4)), ((), (2, 2)), ((1,), (1,))])
def test_broadcast_args(a: tuple[int, ...], b: tuple[int, ...], index: str) -> None:
    model = build("BROADCAST_ARGS", [T(index, (len(a),)), T(index, (len(b),))], [T(index, ())])
    inputs = [np.array(a, index), np.array(b, index)]
    if prod((len(a), len(b))):
        assert_same(model, inputs)
    else:
        assert tflq(model, inputs)[0].tolist() == list(np.broadcast_shapes(a, b))


def test_broadcast_args_that_do_not_fit() -> None:
    model = build("BROADCAST_ARGS", [T("int32", (1,)), T("int32", (1,))], [T("int32", ())])
    with pytest.raises(UndefinedResultError):
        tflq(model, [np.array([2], np.int32), np.array([3], np.int32)])
