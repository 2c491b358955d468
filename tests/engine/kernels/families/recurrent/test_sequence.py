from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.recurrence import assert_same_runs, codes, floats, normal, power, state, weights
from support.single_op import T, build, tflq
from tflq.errors import ModelError, UndefinedResultError

KINDS = ("float32", "int8", "uint8")


def _cell(rng: np.random.Generator, kind: str, batch: int, depth: int, units: int) -> list[T]:
    return [
        weights(rng, kind, units, depth),
        weights(rng, kind, units, units),
        floats(rng, units),
        state("float32", batch, units),
    ]


def _options(rng: np.random.Generator) -> dict[str, object]:
    return {
        "fused_activation_function": int(rng.integers(0, 6)),
        "asymmetric_quantize_inputs": bool(rng.integers(0, 2)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_rnn(kind: str, seed: int) -> None:
    rng = np.random.default_rng([1, seed, KINDS.index(kind)])
    batch, depth, units = (int(n) for n in rng.integers(1, [5, 40, 30]))
    options = _options(rng)
    inputs = [T("float32", (batch, depth)), *_cell(rng, kind, batch, depth, units)]
    model = build("RNN", inputs, [T("float32", (batch, units))], ("RNNOptions", options), 3)
    assert_same_runs(model, [[normal(rng, batch, depth)] for _ in range(3)], options)


@pytest.mark.parametrize("code", [-128, 127])
def test_long_rows(code: int) -> None:
    """Sums of weights wrap in 16 bits; a weight of -128 loses its sign, but not in the last columns."""
    rng = np.random.default_rng(code + 128)
    depth, units = 4501, 3
    wide = np.full((units, depth), code) - rng.integers(0, 2, (units, depth)) * np.sign(code)
    cell = [T("int8", (units, depth), 0.001, value=wide), *_cell(rng, "int8", 2, depth, units)[1:]]
    options = {"asymmetric_quantize_inputs": True}
    model = build("RNN", [T("float32", (2, depth)), *cell], [T("float32", (2, units))], ("RNNOptions", options), 3)
    assert_same_runs(model, [[rng.standard_normal((2, depth)).astype(np.float32) + np.float32(0.5)]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("time_major", [False, True])
def test_many_rows(kind: str, time_major: bool) -> None:
    """Steps of many rows go through tiles, except for steps of zeros."""
    rng = np.random.default_rng([7, KINDS.index(kind)])
    first, depth, units = ((4, 24) if time_major else (24, 4)), 130, 115
    for function in (3, 4):
        options = {"fused_activation_function": function, "asymmetric_quantize_inputs": True, "time_major": time_major}
        inputs = [T("float32", (*first, depth)), *_cell(rng, kind, 24, depth, units)]
        output = [T("float32", (*first, units))]
        model = build("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, output, ("SequenceRNNOptions", options), 3)
        runs = [[normal(rng, *first, depth)] for _ in range(3)]
        runs[1][0][1] = 0
        assert_same_runs(model, runs, options)


@each("kind", KINDS)
@each("seed", range(10))
def test_unidirectional(kind: str, seed: int) -> None:
    rng = np.random.default_rng([2, seed, KINDS.index(kind)])
    batch, depth, units, time = (int(n) for n in rng.integers(1, [5, 40, 30, 6]))
    options = {**_options(rng), "time_major": bool(seed % 2)}
    first = (time, batch) if seed % 2 else (batch, time)
    inputs = [T("float32", (*first, depth)), *_cell(rng, kind, batch, depth, units)]
    model = build(
        "UNIDIRECTIONAL_SEQUENCE_RNN", inputs, [T("float32", (*first, units))], ("SequenceRNNOptions", options), 3
    )
    assert_same_runs(model, [[normal(rng, *first, depth)] for _ in range(2)], options)


def _bidirectional(rng: np.random.Generator, kind: str, auxiliary: int, **fixed: object) -> tuple[bytes, list[T]]:
    """`auxiliary`: 0 none, 1 the backward cell's input, 2 with weights of its own."""
    batch, depth, units, others, time = (int(n) for n in rng.integers(1, [5, 40, 30, 20, 5]))
    options = {**_options(rng), "time_major": bool(rng.integers(0, 2)), "merge_outputs": bool(rng.integers(0, 2))}
    if options["merge_outputs"]:
        options["asymmetric_quantize_inputs"] = True
    options |= fixed
    first = (time, batch) if options["time_major"] else (batch, time)
    extra = depth + int(rng.integers(0, 5)) if auxiliary == 2 else depth
    given = [T("float32", (*first, depth))] + [T("float32", (*first, extra))] * (auxiliary > 0)
    inputs: list[T | None] = [given[0], *_cell(rng, kind, batch, depth, units)]
    inputs += [*_cell(rng, kind, batch, depth, others), given[1] if auxiliary else None]
    inputs += [weights(rng, kind, n, extra) if auxiliary == 2 else None for n in (units, others)]
    columns = (units + others,) if options["merge_outputs"] else (units, others)
    outputs = [T("float32", (*first, n)) for n in columns]
    return build("BIDIRECTIONAL_SEQUENCE_RNN", inputs, outputs, ("BidirectionalSequenceRNNOptions", options), 3), given


@each("auxiliary", range(3))
@each("kind", KINDS)
@each("seed", range(5))
def test_bidirectional(kind: str, auxiliary: int, seed: int) -> None:
    rng = np.random.default_rng([3, seed, KINDS.index(kind), auxiliary])
    model, given = _bidirectional(rng, kind, auxiliary)
    assert_same_runs(model, [[normal(rng, *t.shape) for t in given] for _ in range(2)])


def test_bidirectional_refused() -> None:
    """Symmetric 8-bit weights with merged outputs, time first and several batches: the source reads through null."""
    rng = np.random.default_rng(0)
    fixed = {"merge_outputs": True, "time_major": True, "asymmetric_quantize_inputs": False}
    for _ in range(20):
        model, given = _bidirectional(rng, "int8", 0, **fixed)
        if given[0].shape[1] > 1:
            with pytest.raises(UndefinedResultError):
                tflq(model, [normal(rng, *t.shape) for t in given])
            return
    pytest.fail("no model with several batches was drawn")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_svdf(kind: str, seed: int) -> None:
    rng = np.random.default_rng([4, seed, KINDS.index(kind)])
    batch, depth, units, rank, memory = (int(n) for n in rng.integers(1, [4, 40, 12, 6, 14]))
    options = {**_options(rng), "rank": rank}
    inputs = [
        T("float32", (batch, depth)),
        weights(rng, kind, units * rank, depth),
        weights(rng, kind, units * rank, memory),
        floats(rng, units) if seed % 2 else None,
        state("float32", batch, units * rank * memory),
    ]
    model = build("SVDF", inputs, [T("float32", (batch, units))], ("SVDFOptions", options), 4)
    assert_same_runs(model, [[normal(rng, batch, depth)] for _ in range(4)], options)


def _integer_svdf(rng: np.random.Generator, state_type: str, seed: int) -> tuple[bytes, tuple[int, int]]:
    batch, depth, units, rank, memory = (int(n) for n in rng.integers(1, [4, 40, 12, 6, 14]))
    inputs = [
        T("int8", (batch, depth), power(rng, -7, -4), int(rng.integers(-128, 128))),
        codes(rng, "int8", -9, -6, units * rank, depth),
        codes(rng, "int16", -16, -13, units * rank, memory),
        T("int32", (units,), 1.0, value=rng.integers(-2_000_000, 2_000_000, units)) if seed % 2 else None,
        state(state_type, batch, units * rank * memory, scale=power(rng, -12, -9)),
    ]
    output = T("int8", (batch, units), power(rng, -5, -1), int(rng.integers(-128, 128)))
    options = {"rank": rank, "fused_activation_function": 1}
    return build("SVDF", inputs, [output], ("SVDFOptions", options), 4), (batch, depth)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_integer_svdf(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    model, shape = _integer_svdf(rng, "int16", seed)
    assert_same_runs(model, [[rng.integers(-128, 128, shape).astype(np.int8)] for _ in range(4)])


def test_refused() -> None:
    rng = np.random.default_rng(6)
    model, shape = _integer_svdf(rng, "int8", 0)
    with pytest.raises(UndefinedResultError, match="int8 state"):
        tflq(model, [np.zeros(shape, np.int8)])
    inputs = [T("float32", (2, 7)), *_cell(rng, "float32", 2, 8, 3)]
    model = build("RNN", inputs, [T("float32", (2, 3))], ("RNNOptions", {}))
    with pytest.raises(ModelError, match="depth"):
        tflq(model, [np.zeros((2, 7), np.float32)])
