"""Operators that read and write by position (gathers, scatters, selections, reversals) against LiteRT."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.single_op import T, assert_same, build, draw, tflq
from support.sweeping import few
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import ModelError, OperatorFailed, UndefinedResultError

TYPES = ["float32", "uint8", "int8", "int16", "int32", "int64", "bool"]


def sizes(rng: np.random.Generator, rank: int, low: int = 1, high: int = 5) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(low, high, rank))


def int32s(*values: int) -> T:
    return T("int32", (len(values),), value=values)


@pytest.mark.parametrize("shared", [0, 1])
def test_preparing_a_gather_takes_no_memory_for_its_slices(shared: int) -> None:
    shape, options = (1 << 10, 1 << 12, 1), {"axis": 2, "batch_dims": shared}
    positions = T("int32", (1 << 10, 1) if shared else (1,))
    model = build("GATHER", [T("int8", shape), positions], [T("int8", shape)], ("GatherOptions", options), version=5)
    record, profile = load(model), by_name("litert-ref")
    make_plan(record, profile)  # whatever is imported
    tracemalloc.start()
    try:
        make_plan(record, profile)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@each("type_", TYPES)
@each("index", ["int16", "int32", "int64"])
def test_gather(type_: str, index: str) -> None:
    rng = np.random.default_rng(31)
    for _ in range(12):
        rank = int(rng.integers(1, 5))
        x = T(type_, sizes(rng, rank))
        axis = int(rng.integers(0, rank))
        shared = int(rng.integers(0, axis + 1))
        positions = T(index, (*x.shape[:shared], *sizes(rng, int(rng.integers(0, 3)))))
        axis -= rank * int(rng.integers(0, 2))
        options = ("GatherOptions", {"axis": axis, "batch_dims": shared})
        model = build("GATHER", [x, positions], [T(type_, ())], options, version=5)
        chosen = rng.integers(0, x.shape[axis], positions.shape).astype(index)
        assert_same(model, [draw(rng, x), chosen], (x.shape, positions.shape, axis, shared))


@pytest.mark.parametrize("position", [-1, 3])
def test_positions_out_of_range_fail_the_run(position: int) -> None:
    x, one = np.zeros(3, np.int8), np.array([position], np.int32)
    gather = build("GATHER", [T("int8", (3,)), T("int32", (1,))], [T("int8", ())], ("GatherOptions", {"axis": 0}))
    gather_nd = build("GATHER_ND", [T("int8", (3,)), T("int32", (1,))], [T("int8", ())])
    scatter_nd = build("SCATTER_ND", [T("int32", (1, 1)), T("int8", (1,)), int32s(3)], [T("int8", ())])
    for model, inputs in (
        (gather, [x, one]),
        (gather_nd, [x, one]),
        (scatter_nd, [one.reshape(1, 1), np.zeros(1, np.int8)]),
    ):
        with pytest.raises(OperatorFailed, match="outside"):
            tflq(model, inputs)


@each("type_", TYPES)
@each("index", ["int16", "int32", "int64"])
def test_gather_nd(type_: str, index: str) -> None:
    rng = np.random.default_rng(32)
    for _ in range(10):
        rank = int(rng.integers(1, 5))
        x, depth = T(type_, sizes(rng, rank)), int(rng.integers(1, rank + 1))
        outer = sizes(rng, int(rng.integers(0, 3)))
        indices = rng.integers(0, x.shape[:depth], (*outer, depth)).astype(index)
        model = build("GATHER_ND", [x, T(index, indices.shape)], [T(type_, ())], version=2)
        assert_same(model, [draw(rng, x), indices], (x.shape, indices.shape))


@pytest.mark.parametrize(
    "type_", few(["float32", "uint8", "int8", "int32", "int64", "bool"], "float32", "int8", "bool")
)
def test_scatter_nd_adds_in_order(type_: str) -> None:
    rng = np.random.default_rng(33)
    for _ in range(10):
        shape = sizes(rng, int(rng.integers(1, 4)))
        depth = int(rng.integers(1, len(shape) + 1))
        indices = rng.integers(0, shape[:depth], (20, depth)).astype(np.int32)
        updates = T(type_, (20, *shape[depth:]))
        model = build("SCATTER_ND", [T("int32", indices.shape), updates, int32s(*shape)], [T(type_, ())])
        assert_same(model, [indices, draw(rng, updates)], (shape, depth))


def test_scatter_nd_refuses() -> None:
    model = build("SCATTER_ND", [T("int32", (2, 1)), T("int8", (3,)), int32s(4)], [T("int8", ())])
    with pytest.raises(ModelError, match="shape"):
        tflq(model, [np.zeros((2, 1), np.int32), np.zeros(3, np.int8)])


@pytest.mark.parametrize("type_", ["float32", "uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_sparse_to_dense(type_: str, index: str) -> None:
    rng = np.random.default_rng(34)
    for rank in range(1, 5):
        shape, count = sizes(rng, rank), 5
        indices = rng.integers(0, shape, (count, rank)).astype(index)
        if rank == 1:
            indices = indices.reshape(-1)
        wanted, default = T(index, (rank,), value=shape), T(type_, ())
        for values in (T(type_, (count,)), T(type_, ())):
            model = build("SPARSE_TO_DENSE", [T(index, indices.shape), wanted, values, default], [T(type_, ())])
            assert_same(model, [indices, draw(rng, values), draw(rng, default)], shape)


@pytest.mark.parametrize("type_", ["float32", "uint8", "int8", "int16", "int32"])
def test_embedding_lookup_copies_rows(type_: str) -> None:
    rng = np.random.default_rng(35)
    for rank in (2, 3):
        table = T(type_, sizes(rng, rank))
        chosen = rng.integers(0, table.shape[0], 6).astype(np.int32)
        model = build("EMBEDDING_LOOKUP", [T("int32", (6,)), table], [T(type_, ())])
        assert_same(model, [chosen, draw(rng, table)])


@pytest.mark.parametrize("type_", ["int8", "int4"])
@pytest.mark.parametrize("rows", [1, 7])
def test_embedding_lookup_scales_rows(type_: str, rows: int) -> None:
    rng = np.random.default_rng(36)
    codes = rng.integers(-8, 8, (7, 6))
    table = T(type_, codes.shape, rng.uniform(0.01, 1, rows).astype(np.float32), 0, value=codes)
    model = build("EMBEDDING_LOOKUP", [T("int32", (9,)), table], [T("float32", ())], version=4)
    assert_same(model, [rng.integers(0, 7, 9).astype(np.int32)])


@pytest.mark.slow
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
def test_selects(type_: str, op: str) -> None:
    rng = np.random.default_rng(37)
    conditions: tuple[Any, ...] = ((2, 3, 4), ()) + (((2,),) if op == "SELECT" else ((4,), (3, 1), (1, 3, 4)))
    x = T(type_, (2, 3, 4))
    for shape in conditions:
        condition = T("bool", shape)
        model = build(op, [condition, x, x], [T(type_, ())], (op.title().replace("_", "") + "Options", {}))
        assert_same(model, [draw(rng, condition), draw(rng, x), draw(rng, x)], shape)


@pytest.mark.parametrize("type_", few(TYPES, "float32", "int8"))
def test_select_v2_broadcasts_all_three(type_: str) -> None:
    rng = np.random.default_rng(38)
    for _ in range(8):
        whole = sizes(rng, int(rng.integers(1, 6)))
        tensors = []
        for kind in ("bool", type_, type_):
            shape = [n if rng.integers(0, 2) else 1 for n in whole]
            tensors.append(T(kind, tuple(shape[int(rng.integers(0, len(shape))) :])))
        model = build("SELECT_V2", tensors, [T(type_, ())], ("SelectV2Options", {}))
        assert_same(model, [draw(rng, t) for t in tensors], [t.shape for t in tensors])


def test_select_of_one_element_keeps_the_declared_shape() -> None:
    one = T("int32", (1,))
    inputs = [np.array(True), np.array([3], np.int32), np.array([[4]], np.int32)]
    for op in ("SELECT", "SELECT_V2"):
        model = build(op, [T("bool", ()), one, T("int32", (1, 1))], [T("int32", (1, 1, 1))])
        assert_same(model, inputs)


@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
def test_selects_refuse(op: str) -> None:
    x = T("int8", (2, 3))
    with pytest.raises(ModelError, match="shape"):
        tflq(build(op, [T("bool", (4,)), x, x], [T("int8", ())]), [np.zeros(4, bool)] + [np.zeros((2, 3), np.int8)] * 2)


@pytest.mark.parametrize("type_", ["bool", "float32", "int64", "int32", "int8", "uint8", "uint32"])
def test_where(type_: str) -> None:
    rng = np.random.default_rng(39)
    for rank in range(1, 5):
        x = T(type_, sizes(rng, rank, 2, 5))
        values = rng.integers(0, 2, x.shape).astype(type_)
        values.reshape(-1)[0] = 1
        assert_same(build("WHERE", [x], [T("int64", ())]), [values])
    special = np.array([0.0, -0.0, np.nan, np.inf, 1e-45], np.float32)
    assert_same(build("WHERE", [T("float32", (5,))], [T("int64", ())]), [special])


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["float32", "int32", "int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_one_hot(type_: str, index: str) -> None:
    rng = np.random.default_rng(40)
    for rank in range(4):
        for axis in range(-1, rank + 1):
            indices, value = T(index, sizes(rng, rank)), T(type_, ())
            model = build(
                "ONE_HOT",
                [indices, T("int32", (), value=4), value, value],
                [T(type_, ())],
                ("OneHotOptions", {"axis": axis}),
            )
            chosen = rng.integers(-2, 6, indices.shape).astype(index)
            assert_same(model, [chosen, draw(rng, value), draw(rng, value)], (indices.shape, axis))
    model = build(
        "ONE_HOT",
        [T("int64", (2,)), T("int32", (), value=3), T("int8", ()), T("int8", ())],
        [T("int8", ())],
        ("OneHotOptions", {"axis": -1}),
    )
    assert_same(model, [np.array([2**32 + 1, 1], np.int64), np.array(5, np.int8), np.array(-5, np.int8)])


@pytest.mark.parametrize("type_", [*TYPES, "float16"])
def test_reverse_v2(type_: str) -> None:
    rng = np.random.default_rng(41)
    for rank in range(1, 6):
        x, first = T(type_, sizes(rng, rank)), int(rng.integers(0, rank))
        axes = rng.permutation(np.arange(first, int(rng.integers(first, rank)) + 1))
        axes = axes - rank * rng.integers(0, 2, len(axes))
        assert_same(build("REVERSE_V2", [x, int32s(*axes)], [T(type_, ())]), [draw(rng, x)], (x.shape, axes))


@pytest.mark.parametrize("axes", [(0, 2), (1, 1), (3,), ()])
def test_reverse_v2_refuses(axes: tuple[int, ...]) -> None:
    with pytest.raises(ModelError):
        tflq(
            build("REVERSE_V2", [T("int8", (1, 2, 3)), int32s(*axes)], [T("int8", ())]), [np.zeros((1, 2, 3), np.int8)]
        )


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["float32", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_reverse_sequence(type_: str, index: str) -> None:
    rng = np.random.default_rng(42)
    for rank in range(2, 5):
        x = T(type_, sizes(rng, rank))
        for sequence, batch in ((0, rank - 1), (rank - 1, 0), (1, 0)):
            lengths = rng.integers(0, x.shape[sequence] + 1, x.shape[batch]).astype(index)
            options = ("ReverseSequenceOptions", {"seq_dim": sequence, "batch_dim": batch})
            model = build("REVERSE_SEQUENCE", [x, T(index, lengths.shape)], [T(type_, ())], options)
            assert_same(model, [draw(rng, x), lengths], (x.shape, sequence, batch, lengths))


def test_reverse_sequence_longer_than_the_dimension() -> None:
    options = ("ReverseSequenceOptions", {"seq_dim": 1, "batch_dim": 0})
    model = build("REVERSE_SEQUENCE", [T("int32", (2, 3)), T("int32", (2,))], [T("int32", ())], options)
    with pytest.raises(UndefinedResultError):
        tflq(model, [np.zeros((2, 3), np.int32), np.array([1, 4], np.int32)])


@pytest.mark.parametrize("type_", few(["float32", "uint8", "int8", "int16", "int32", "int64"], "float32", "int64"))
@pytest.mark.parametrize(("number", "index"), [(2, "int32"), (4, "int64")])
def test_unique(type_: str, number: int, index: str) -> None:
    values = np.array([3, 1, 0, 3, 1, 7, 0, 2], type_)
    model = build("UNIQUE", [T(type_, (8,))], [T(type_, ()), T(index, ())], ("UniqueOptions", {"idx_out_type": number}))
    assert_same(model, [values])
    if type_ == "float32":
        assert_same(model, [np.array([-0.0, 0.0, 1, -0.0, np.inf, -np.inf, 1, 5], np.float32)])
        with pytest.raises(UndefinedResultError):
            tflq(model, [np.full(8, np.nan, np.float32)])


@pytest.mark.parametrize("type_", ["float32", "int8", "int32", "int64"])
def test_unique_of_many_values(type_: str) -> None:
    """Random values, and those whose slots collide: they are sorted instead."""
    rng = np.random.default_rng(43)
    high = {"int8": 100, "int32": 2**31 - 1, "int64": 2**62, "float32": 2000}[type_]
    options = ("UniqueOptions", {"idx_out_type": 2})
    model = build("UNIQUE", [T(type_, (3000,))], [T(type_, ()), T("int32", ())], options)
    assert_same(model, [rng.integers(-high, high, 3000).astype(type_)])
    assert_same(model, [rng.integers(-20, 20, 3000).astype(type_)])
    if type_ == "int64":
        assert_same(model, [rng.permutation(3000) << 46])


@pytest.mark.parametrize("type_", ["float32", "uint8", "int8", "int16", "int32", "uint32", "int64"])
def test_matrix_diagonals(type_: str) -> None:
    rng = np.random.default_rng(43)
    for shape in ((3,), (2, 4), (2, 1, 3)):
        x = T(type_, shape)
        assert_same(build("MATRIX_DIAG", [x], [T(type_, ())], ("MatrixDiagOptions", {})), [draw(rng, x)], shape)
    for matrix in ((3, 3), (2, 3, 4), (2, 4, 3)):
        x, diagonal = T(type_, matrix), T(type_, (*matrix[:-2], min(matrix[-2:])))
        model = build("MATRIX_SET_DIAG", [x, diagonal], [T(type_, ())], ("MatrixSetDiagOptions", {}))
        assert_same(model, [draw(rng, x), draw(rng, diagonal)], matrix)


@each("type_", TYPES)
@each("index", ["int32", "int64"])
def test_dynamic_update_slice(type_: str, index: str) -> None:
    rng = np.random.default_rng(44)
    for rank in range(1, 6):
        x = T(type_, sizes(rng, rank))
        update = T(type_, tuple(int(rng.integers(1, n + 1)) for n in x.shape))
        start = rng.integers(-3, 7, rank).astype(index)
        options = ("DynamicUpdateSliceOptions", {})
        model = build("DYNAMIC_UPDATE_SLICE", [x, update, T(index, (rank,))], [T(type_, ())], options)
        assert_same(model, [draw(rng, x), draw(rng, update), start], (x.shape, update.shape, start))
