"""Arrays from outside: what is let in, as what, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.toys import PROFILE, graph, ints, quantized, tensor
from tflq.engine.interpreter import State, make_plan, run
from tflq.engine.interpreter.evaluation import admit, fits, open_shape
from tflq.errors import InputError, ShapeError, TypeMismatchError, UnsupportedError
from tflq.model.ir import CARRIER, TensorSpec, TensorType

CODES = np.arange(12, dtype=np.int8).reshape(3, 4)


@pytest.mark.parametrize(
    "value",
    [
        CODES[::-1],
        CODES[:, ::2],
        CODES.T,
        np.broadcast_to(CODES[:1], (3, 4)),
        np.asfortranarray(CODES),
        CODES.astype(object).astype(np.int8),
        np.ma.masked_array(CODES),
        CODES[0, 0],
        CODES[:0],
    ],
)
def test_any_layout_becomes_contiguous(value: Any) -> None:
    got = admit(value, TensorType.INT8, value.shape, "x")
    assert type(got) is np.ndarray
    assert got.flags.c_contiguous
    assert got.flags.aligned
    np.testing.assert_array_equal(got, np.asarray(value))


def test_what_fits_is_not_copied() -> None:
    assert admit(CODES, TensorType.INT8, (3, 4), "x") is CODES


@pytest.mark.parametrize("type_", [TensorType.FLOAT32, TensorType.INT16, TensorType.INT64, TensorType.COMPLEX64])
def test_other_byte_orders_and_odd_addresses(type_: TensorType) -> None:
    dtype = CARRIER[type_]
    value = np.array([1, 2, 3], dtype)
    packed = np.frombuffer(b"?" + value.tobytes(), np.dtype([("pad", "u1"), ("x", dtype, 3)]))["x"][0]
    for given in (value.astype(dtype.newbyteorder("S")), packed):
        got = admit(given, type_, (3,), "x")
        assert got.dtype == dtype
        assert got.dtype.isnative
        assert got.flags.aligned
        np.testing.assert_array_equal(got, value)


@each("type_", [t for t in TensorType if CARRIER[t] != np.dtype(object)])
def test_numbers_of_another_type_are_refused(type_: TensorType) -> None:
    """Even where every value could be converted, and where they are as wide."""
    allowed = {CARRIER[type_], np.dtype(np.int8) if "float8" in type_.label else CARRIER[type_]}
    for dtype in {*map(np.dtype, "?bBhHiIlLefdFDOSU"), np.dtype("V1"), np.dtype("M8[s]"), np.dtype([("a", "u1")])}:
        value = np.zeros(2, dtype)
        if dtype in allowed:
            assert admit(value, type_, (2,), "x").dtype == CARRIER[type_]
        else:
            with pytest.raises(TypeMismatchError, match="x: element type"):
                admit(value, type_, (2,), "x")


@pytest.mark.parametrize("shape", [(), (12,), (4, 3), (3, 4, 1), (3, 5), (0, 4)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="x: shape"):
        admit(CODES, TensorType.INT8, shape, "x")
    with pytest.raises(ShapeError, match="x: shape"):
        admit(np.zeros(shape, np.int8), TensorType.INT8, (3, 4), "x")


def test_open_dimensions() -> None:
    assert fits((-1, 4), (3, 4))
    assert not fits((-1, 4), (3, 5))
    assert not fits((-1, 4), (4,))
    spec = TensorSpec("x", TensorType.INT8, (1, 4), shape_signature=(-1, 4))
    assert open_shape(spec) == (-1, 4)
    assert open_shape(replace(spec, shape_signature=None)) == (1, 4)
    assert open_shape(replace(spec, shape=(), shape_signature=None)) is None
    assert open_shape(replace(spec, shape=(), shape_signature=None, has_rank=True)) == ()
    assert admit(CODES, TensorType.INT8, None, "x") is CODES


@pytest.mark.parametrize("value", [np.array([b"a", "ä"], object), np.array(["a", "ä"]), ["a", "ä"]])
def test_strings_become_bytes(value: Any) -> None:
    assert admit(value, TensorType.STRING, (2,), "x").tolist() == [b"a", "ä".encode()]


@pytest.mark.parametrize("value", [np.array([b"a", 1], object), np.array([1, 2]), np.array(["a", "\ud800"])])
def test_what_is_no_string(value: Any) -> None:
    with pytest.raises(InputError, match="x"):
        admit(value, TensorType.STRING, (2,), "x")


@pytest.mark.parametrize(("type_", "code"), [(TensorType.INT4, 8), (TensorType.UINT4, 16), (TensorType.INT2, -3)])
def test_codes_beyond_narrow_types(type_: TensorType, code: int) -> None:
    with pytest.raises(InputError, match="out of range"):
        admit(np.array([0, code], CARRIER[type_]), type_, (2,), "x")


def test_ragged_lists_and_unknown_types() -> None:
    with pytest.raises(InputError, match="not an array"):
        admit([[1], [1, 2]], TensorType.INT32, None, "x")
    with pytest.raises(UnsupportedError, match="type 99"):
        admit(CODES, 99, None, "x")


COPY = make_plan(graph([tensor(), tensor()], [("COPY", [0], [1])], [0], [1]), PROFILE)


@pytest.mark.parametrize(
    ("inputs", "error", "words"),
    [
        ({}, InputError, "no value is given"),
        ({0: ints(1, 2), 1: ints(1, 2)}, InputError, "not an input of the graph"),
        ({0: ints(1, 2, 3)}, ShapeError, r"expected \[2\], got \[3\]"),
        ({0: np.zeros(2, np.float32)}, TypeMismatchError, "expected int32, got float32"),
        ({0: ints(1, 2).astype(">i4")}, TypeMismatchError, "expected int32, got >i4"),
    ],
)
def test_a_run_takes_what_was_planned_for(inputs: Any, error: type[InputError], words: str) -> None:
    with pytest.raises(error, match=words):
        run(COPY, inputs)


def test_a_run_takes_any_shape_where_none_was_planned_for() -> None:
    model = graph([tensor(), tensor()], [("COPY", [0], [1])], [0], [1])
    plan = make_plan(model, PROFILE, input_shapes={0: None})
    assert run(plan, {0: ints(1, 2, 3)}).values[1].tolist() == [1, 2, 3]
    with pytest.raises(TypeMismatchError):
        run(plan, {0: np.zeros(2, np.float32)})


@pytest.mark.parametrize("value", [np.zeros(2, np.float32), np.zeros(3, np.int32)])
def test_a_run_takes_variables_as_they_were_declared(value: Any) -> None:
    model = graph([tensor(), tensor(is_variable=True), tensor()], [("ACCUMULATE", [0, 1], [2])], [0], [2])
    with pytest.raises((TypeMismatchError, ShapeError), match="t1"):
        run(make_plan(model, PROFILE), {0: ints(1, 2)}, State(variables={1: value}))


def test_a_zero_point_beyond_eight_bits_is_cut() -> None:
    """As memset cuts it, which LiteRT fills variables with."""
    state = tensor(TensorType.INT8, is_variable=True, quantization=quantized(0.5, 300))
    model = graph([tensor(TensorType.INT8), state, tensor(TensorType.INT8)], [("ACCUMULATE", [0, 1], [2])], [0], [2])
    assert run(make_plan(model, PROFILE), {0: np.zeros(2, np.int8)}).values[2].tolist() == [44, 44]
