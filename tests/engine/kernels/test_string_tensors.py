"""Tensors of strings against LiteRT, in every operator that takes them and through subgraphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.each import each
from support.graphs import Graph, Op, assert_runs, build
from support.graphs import tflq as run_here
from support.single_op import Array, T
from tflq.errors import UnsupportedError

WORDS = [b"a", b"bcd", b"", b"a", b"zz top", "Grüße".encode()]
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "EQUAL": ("EqualOptions", {}),
    "NOT_EQUAL": ("NotEqualOptions", {}),
    "STRIDED_SLICE": ("StridedSliceOptions", {}),
    "SQUEEZE": ("SqueezeOptions", {}),
    "SHAPE": ("ShapeOptions", {"out_type": 2}),
    "RANK": ("RankOptions", {}),
    "GATHER": ("GatherOptions", {"axis": 0}),
}


def text(*shape: int) -> T:
    return T("string", shape)


def numbers(value: Any) -> T:
    return T("int32", np.shape(value), value=value)


CASES: list[tuple[str, list[T], T]] = [
    *(
        (op, [text(*a), text(*b)], T("bool", np.broadcast_shapes(a, b)))
        for op in ("EQUAL", "NOT_EQUAL")
        for a, b in [((7,), (7,)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((2, 3), ()), ((1, 1, 2, 2), (2, 1, 2, 2))]
    ),
    *(("EXPAND_DIMS", [text(2, 3), numbers(axis)], text()) for axis in (0, 1, 2, -1, -3)),
    *(("FILL", [numbers(shape), text()], text(*shape)) for shape in ([2, 3], [1], [4], [1, 2, 2, 1], [3, 3])),
    *(("GATHER", [text(6), numbers(at)], text()) for at in ([3, 1, 1], [[3, 1], [0, 5]], [5], [0, 1, 2, 3], [[[2]]])),
    *(
        ("GATHER_ND", [text(2, 3, 2), numbers(at)], text())
        for at in ([[1, 2, 1], [0, 0, 0]], [[1, 2], [0, 1]], [[1]], [[[0], [1]]], [1, 1])
    ),
    *(("RESHAPE", [text(2, 6), numbers(shape)], text()) for shape in ([3, 4], [-1], [2, 1, 6], [12, 1], [4, -1])),
    *(
        ("SLICE", [text(3, 4), numbers(begin), numbers(size)], text())
        for begin, size in [([1, 1], [2, 2]), ([0, 0], [-1, -1]), ([2, 0], [1, 4]), ([0, 3], [3, 1]), ([1, 2], [-1, 1])]
    ),
    *(
        ("STRIDED_SLICE", [text(3, 4), numbers(begin), numbers(end), numbers(step)], text())
        for begin, end, step in [
            ([0, 1], [3, 4], [2, 2]),
            ([0, 0], [3, 4], [1, 1]),
            ([2, 3], [0, 0], [-1, -2]),
            ([-1, -3], [3, 4], [1, 1]),
            ([0, 3], [1, 4], [1, 1]),
        ]
    ),
    *(("SQUEEZE", [text(*shape)], text()) for shape in [(1, 3, 1), (3,), (1, 1), (2, 1, 2), (1, 2, 3)]),
    *(("TILE", [text(2, 3), numbers(times)], text()) for times in ([2, 1], [1, 1], [1, 3], [2, 2], [3, 1])),
    *((op, [text(*shape)], T("int32", ())) for op in ("SHAPE", "RANK") for shape in [(2, 3), (1,), (4, 1, 2)]),
]


def words(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """None of them empty where there is but one: LiteRT's set_tensor takes an empty scalar's padding for text."""
    if not shape:
        return np.array(WORDS[int(rng.choice([0, 1, 3, 4]))], np.bytes_)
    return np.array([WORDS[i] for i in rng.integers(0, len(WORDS), int(np.prod(shape)))], np.bytes_).reshape(shape)


@each("case", CASES, ids=[f"{op}-{i}" for i, (op, _, _) in enumerate(CASES)])
def test_operators(case: tuple[str, list[T], T]) -> None:
    op, given, made = case
    free = [i for i, t in enumerate(given) if t.value is None]
    count = len(given)
    model = build(Graph([*given, made], free, (count,), [Op(op, range(count), (count,), OPTIONS.get(op))]))
    rng = np.random.default_rng(count)
    assert_runs(model, [[words(rng, tuple(given[i].shape)) for i in free] for _ in range(3)])


def test_constants() -> None:
    constant = T("string", (2, 3), value=[[b"a", b"bcd", b""], [b"x", b"zz top", b"bcd"]])
    model = build(
        Graph([text(2, 3), constant, T("bool", (2, 3))], (0,), (2,), [Op("EQUAL", (0, 1), (2,), OPTIONS["EQUAL"])])
    )
    assert_runs(model, [[words(np.random.default_rng(n), (2, 3))] for n in range(3)])


def test_through_subgraphs() -> None:
    """One of two texts, then in a loop."""
    main = Graph(
        [T("bool", ()), text(3), text(3), text(3)],
        (0, 1, 2),
        (3,),
        [Op("IF", (0, 1, 2), (3,), ("IfOptions", {"then_subgraph_index": 1, "else_subgraph_index": 2}))],
    )
    branches = [
        Graph(
            [text(3), text(3), numbers(at), text(3)], (0, 1), (3,), [Op("GATHER", (source, 2), (3,), OPTIONS["GATHER"])]
        )
        for source, at in [(0, [2, 1, 0]), (1, [0, 0, 1])]
    ]
    rng = np.random.default_rng(1)
    runs = [[np.array(condition), words(rng, (3,)), words(rng, (3,))] for condition in (True, False, True)]
    assert_runs(build(main, *branches), runs)
    loop = Graph(
        [T("int32", ()), text(3), T("int32", ()), text(3)],
        (0, 1),
        (2, 3),
        [Op("WHILE", (0, 1), (2, 3), ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2}))],
    )
    cond = Graph(
        [T("int32", ()), text(3), numbers(4), T("bool", ())],
        (0, 1),
        (3,),
        [Op("LESS", (0, 2), (3,), ("LessOptions", {}))],
    )
    body = Graph(
        [T("int32", ()), text(3), numbers(1), T("int32", ()), numbers([1, 2, 0]), text(3)],
        (0, 1),
        (3, 5),
        [Op("ADD", (0, 2), (3,), ("AddOptions", {})), Op("GATHER", (1, 4), (5,), OPTIONS["GATHER"])],
    )
    assert_runs(build(loop, cond, body), [[np.array(n, np.int32), words(rng, (3,))] for n in (0, 2, 4, 3)])


def test_operators_without_strings_refuse_them() -> None:
    model = build(Graph([text(2, 3), numbers([1, 0]), text(3, 2)], (0,), (2,), [Op("TRANSPOSE", (0, 1), (2,))]))
    with pytest.raises(UnsupportedError, match="string"):
        run_here(model, [[words(np.random.default_rng(0), (2, 3))]])
