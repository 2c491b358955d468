"""StableHLO's operators that move and fold elements, and their TFLite kin, against LiteRT's kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support import graphs
from support.each import each
from support.graphs import Graph, Op
from support.parameters import NUMBERS, floats
from support.single_op import T, assert_same, build, draw, tflq
from support.sweeping import few
from tflq.errors import ModelError, UndefinedResultError

SIZED = ["int8", "int16", "float32", "int64", "bool", "float16", "complex64"]
FOLDED = ["float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]


def values(rng, type_, shape):
    if type_ in ("float16", "float32", "float64"):
        return floats(rng, shape).astype(type_)
    return draw(rng, T(type_, shape))


def small(rng, low, high, count):
    return tuple(int(v) for v in rng.integers(low, high, count))


@each("seed", range(40))
def test_pad(seed):
    """Borders that cut, elements apart, results that are empty."""
    rng = np.random.default_rng(seed)
    type_, rank = SIZED[seed % len(SIZED)], int(rng.integers(1, 5))
    shape, low, high = small(rng, 1, 5, rank), small(rng, -3, 4, rank), small(rng, -3, 4, rank)
    interior = small(rng, 0, 3, rank) if seed % 2 else (0,) * rank
    sizes = [n + (n - 1) * i + a + b for n, i, a, b in zip(shape, interior, low, high, strict=True)]
    if min(sizes) <= 0:
        high = tuple(b + max(0, 1 - s) for b, s in zip(high, sizes, strict=True))
    options = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    model = build("STABLEHLO_PAD", [T(type_, shape), T(type_, ())], [T(type_, shape)], ("StablehloPadOptions", options))
    assert_same(model, [values(rng, type_, shape), values(rng, type_, ())], (shape, options))


def test_pad_to_nothing():
    options = {"edge_padding_low": (-3, 0), "edge_padding_high": (0, 1), "interior_padding": (0, 0)}
    given = [T("int32", (3, 2)), T("int32", ())]
    model = build("STABLEHLO_PAD", given, [T("int32", (0, 0))], ("StablehloPadOptions", options))
    (got,) = tflq(model, [np.zeros((3, 2), np.int32), np.array(1, np.int32)])
    assert got.shape == (0, 0)


@each("seed", range(14))
def test_dilate(seed):
    rng = np.random.default_rng(seed)
    type_, rank = SIZED[seed % len(SIZED)], int(rng.integers(1, 5))
    shape, steps = small(rng, 1, 5, rank), small(rng, 1, 4, rank)
    constant = seed % 3 > 0
    given = [T(type_, shape), T("int32", (rank,), value=steps if constant else None), T(type_, ())]
    model = build("DILATE", given, [T(type_, shape)], ("DilateOptions", {}))
    run_time = [] if constant else [np.array(steps, np.int32)]
    assert_same(model, [values(rng, type_, shape), *run_time, values(rng, type_, ())], (shape, steps))


@pytest.mark.slow
@pytest.mark.parametrize("type_", FOLDED)
@pytest.mark.parametrize("function", [1, 2, 3, 4, 5, 6])
def test_reduce_window(function, type_):
    rng = np.random.default_rng(function)
    for _ in range(5):
        rank = int(rng.integers(1, 5))
        shape, window, strides, apart = (small(rng, *limits, rank) for limits in ((1, 7), (1, 4), (1, 3), (1, 3)))
        shape = tuple(max(n, (k - 1) * d + 1) for n, k, d in zip(shape, window, apart, strict=True))
        numbers = [T("int64", (rank,), value=v) for v in (window, strides, apart)]
        given = [T(type_, shape), T(type_, ()), *numbers]
        model = build("REDUCE_WINDOW", given, [T(type_, shape)], ("ReduceWindowOptions", {"reduce_function": function}))
        assert_same(model, [values(rng, type_, shape), values(rng, type_, ())], (shape, window, strides, apart))


BODIES = [
    "ADD",
    "MUL",
    "MAXIMUM",
    "MINIMUM",
    "LOGICAL_AND",
    "LOGICAL_OR",
    "STABLEHLO_ADD",
    "STABLEHLO_MULTIPLY",
    "STABLEHLO_MAXIMUM",
    "STABLEHLO_MINIMUM",
]


def scalar(op, type_):
    """A subgraph of one operator on two scalars; without one it gives its second input."""
    if op is None:
        return Graph([T(type_, ()), T(type_, ())], [0, 1], [1])
    return Graph([T(type_, ())] * 3, [0, 1], [2], [Op(op, [0, 1], [2])])


@pytest.mark.parametrize("seed", few(range(24), 0, 4, 7, 8))
def test_stablehlo_reduce_window(seed):
    rng = np.random.default_rng(seed)
    body = BODIES[seed % len(BODIES)]
    type_ = "bool" if body.startswith("LOGICAL") else FOLDED[seed % 7]
    rank = int(rng.integers(1, 5))
    shape, window, strides, base, apart = (
        small(rng, *limits, rank) for limits in ((1, 6), (1, 4), (1, 3), (1, 3), (1, 3))
    )
    padding = small(rng, -1, 4, 2 * rank) if seed % 4 else ()
    edges = padding or (0,) * 2 * rank
    reach = [(k - 1) * d + 1 for k, d in zip(window, apart, strict=True)]
    sizes = [(n - 1) * b + 1 + sum(edges[2 * i : 2 * i + 2]) for i, (n, b) in enumerate(zip(shape, base, strict=True))]
    window = tuple(k if n >= r else 1 for k, n, r in zip(window, sizes, reach, strict=True))
    if min(sizes) <= 0:
        padding = ()
        window = (1,) * rank
    options = {
        "window_dimensions": window,
        "window_strides": strides if seed % 3 else (),
        "base_dilations": base,
        "window_dilations": apart,
        "padding": padding,
        "body_subgraph_index": 1,
    }
    op = Op("STABLEHLO_REDUCE_WINDOW", [0, 1], [2], ("StablehloReduceWindowOptions", options))
    main = Graph([T(type_, shape), T(type_, ()), T(type_, shape)], [0, 1], [2], [op])
    model = graphs.build(main, scalar(body, type_))
    assert_same(model, [values(rng, type_, shape), values(rng, type_, ())], (body, shape, options))


def dimensions(rng):
    """Random slices of an array: sizes, which dimensions are collapsed and mapped, and how the batch lies."""
    rank = int(rng.integers(1, 5))
    shape = small(rng, 1, 6, rank)
    sizes = tuple(int(rng.integers(1, n + 1)) for n in shape)
    collapsed = tuple(d for d in range(rank) if rng.random() < 0.4)
    sizes = tuple(1 if d in collapsed else n for d, n in enumerate(sizes))
    mapped = tuple(int(d) for d in rng.permutation(rank)[: rng.integers(1, rank + 1)])
    batch = small(rng, 1, 4, rng.integers(0, 3))
    vector = int(rng.integers(0, len(batch) + 1))
    kept = [n for d, n in enumerate(sizes) if d not in collapsed]
    offsets = tuple(sorted(int(d) for d in rng.permutation(len(batch) + len(kept))[: len(kept)]))
    lengths, others = iter(kept), iter(batch)
    result = tuple(next(lengths if d in offsets else others) for d in range(len(batch) + len(kept)))
    starts = (*batch[:vector], len(mapped), *batch[vector:])
    return shape, sizes, collapsed, mapped, offsets, vector, starts, result


@each("seed", range(40))
def test_gather(seed):
    rng = np.random.default_rng(seed)
    type_, index = SIZED[seed % len(SIZED)], ("int32", "int64")[seed % 2]
    shape, sizes, collapsed, mapped, offsets, vector, starts, result = dimensions(rng)
    options = {
        "offset_dims": offsets,
        "collapsed_slice_dims": collapsed,
        "start_index_map": mapped,
        "index_vector_dim": vector,
        "slice_sizes": sizes,
    }
    model = build(
        "STABLEHLO_GATHER", [T(type_, shape), T(index, starts)], [T(type_, result)], ("StablehloGatherOptions", options)
    )
    assert_same(model, [values(rng, type_, shape), rng.integers(-2, 7, starts).astype(index)], (shape, options))


@pytest.mark.slow
@pytest.mark.parametrize(
    "body", [None, "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"]
)
@pytest.mark.parametrize("seed", range(12))
def test_scatter(seed, body):
    rng = np.random.default_rng(100 + seed)
    type_, index = NUMBERS[seed], ("int32", "int64")[seed % 2]
    for _ in range(3):
        shape, _, inserted, mapped, window, vector, starts, updates = dimensions(rng)
        options = {
            "update_window_dims": window,
            "inserted_window_dims": inserted,
            "scatter_dims_to_operand_dims": mapped,
            "index_vector_dim": vector,
            "update_computation_subgraph_index": 1,
        }
        op = Op("STABLEHLO_SCATTER", [0, 1, 2], [3], ("StablehloScatterOptions", options))
        tensors = [T(type_, shape), T(index, starts), T(type_, updates), T(type_, shape)]
        model = graphs.build(Graph(tensors, [0, 1, 2], [3], [op]), scalar(body, type_))
        x, given = values(rng, type_, shape), rng.permutation(values(rng, type_, updates).reshape(-1)).reshape(updates)
        where = rng.integers(-1, 5, starts).astype(index)
        with np.errstate(over="ignore"):
            assert_same(model, [x, where, given], (shape, starts, updates, options))


def test_an_unknown_computation_is_refused():
    options = {
        "update_window_dims": (),
        "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1,
        "update_computation_subgraph_index": 1,
    }
    op = Op("STABLEHLO_SCATTER", [0, 1, 2], [3], ("StablehloScatterOptions", options))
    tensors = [T("int32", (4,)), T("int32", (2, 1)), T("int32", (2,)), T("int32", (4,))]
    model = graphs.build(Graph(tensors, [0, 1, 2], [3], [op]), scalar("SUB", "int32"))
    with pytest.raises(ModelError, match="computation"):
        tflq(model, [np.zeros(4, np.int32), np.zeros((2, 1), np.int32), np.zeros(2, np.int32)])


def test_dimension_numbers_that_do_not_fit_are_undefined():
    options = {
        "offset_dims": (),
        "collapsed_slice_dims": (0,),
        "start_index_map": (0,),
        "index_vector_dim": 1,
        "slice_sizes": (1,),
    }
    model = build(
        "STABLEHLO_GATHER",
        [T("int32", (4,)), T("int32", (2,))],
        [T("int32", (2,))],
        ("StablehloGatherOptions", options),
    )
    with pytest.raises(UndefinedResultError):
        tflq(model, [np.zeros(4, np.int32), np.zeros(2, np.int32)])


@each("type_", ["int32", "uint32", "int64", "uint64"])
@each(("algorithm", "size"), [(0, 2), (1, 2), (1, 3), (2, 2)])
def test_random_bits(algorithm, size, type_):
    """States near the counter's end too."""
    rng = np.random.default_rng(7)
    for shape in ((), (5,), (3, 4, 2), (1000,)):
        model = build(
            "STABLEHLO_RNG_BIT_GENERATOR",
            [T("uint64", (size,))],
            [T("uint64", (size,)), T(type_, shape)],
            ("StablehloRngBitGeneratorOptions", {"algorithm": algorithm}),
        )
        for counter in (int(rng.integers(0, 2**63)), 2**32 - 2, 2**64 - 1):
            state = rng.integers(0, 2**64, size, dtype=np.uint64)
            state[1] = counter
            assert_same(model, [state], (shape, state))
