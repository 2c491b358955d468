from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from support.recurrence import assert_same_runs, codes, floats, normal, power, state, weights
from support.single_op import Array, T, allocate, build, tflq
from tflq.comparison.inspection.operators import prepare_alone
from tflq.comparison.inspection.prepared import parts_of
from tflq.engine.kernels.families.recurrent import lstm_integers
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.multiplier import Multiplier
from tflq.engine.numerics.stages import OutputStage
from tflq.engine.profiles import PROFILES
from tflq.errors import ModelError, UndefinedResultError
from tflq.model.flatbuf import read

KINDS = ("float32", "int8", "uint8")


@dataclass(frozen=True)
class Shape:
    """Extents and optional parts of a cell."""

    batch: int
    depth: int
    cells: int
    outputs: int
    cifg: bool
    peephole: bool
    projected: bool
    biased: bool
    normalised: bool

    @classmethod
    def draw(cls, rng: np.random.Generator, **fixed: Any) -> Shape:
        batch, depth, cells = (int(n) for n in rng.integers(1, [7, 50, 40]))
        parts = [bool(n) for n in rng.integers(0, 2, 5)]
        outputs = int(rng.integers(1, cells + 1)) if parts[2] else cells
        drawn = dict(zip(("cifg", "peephole", "projected", "biased", "normalised"), parts, strict=True))
        return cls(**{"batch": batch, "depth": depth, "cells": cells, "outputs": outputs, **drawn, **fixed})

    def gates(self, made: Any, *, absent: bool = False) -> list[T | None]:
        """`made()` for every gate, None for the input gate with CIFG, or for all."""
        return [None if absent or (self.cifg and gate == 0) else made() for gate in range(4)]


def _options(rng: np.random.Generator, **more: object) -> dict[str, object]:
    return {
        "fused_activation_function": int(rng.choice([0, 1, 2, 3, 4, 4, 4, 5])),
        "cell_clip": float(rng.choice([0, 0, 0.3])),
        "proj_clip": float(rng.choice([0, 0.2])),
        "asymmetric_quantize_inputs": bool(rng.integers(0, 2)),
        **more,
    }


def _weights(rng: np.random.Generator, kind: str, s: Shape, *, diagonal: bool = False) -> list[T | None]:
    """Positions 1 to 17; recurrent weights may be diagonal here and there."""

    def recurrent() -> T:
        alone = diagonal and s.outputs == s.cells and rng.random() < 0.2
        return floats(rng, s.cells) if alone else weights(rng, kind, s.cells, s.outputs)

    peepholes = s.gates(lambda: weights(rng, kind, s.cells), absent=not s.peephole)[:3]
    return [
        *s.gates(lambda: weights(rng, kind, s.cells, s.depth)),
        *s.gates(recurrent),
        *peepholes,
        *s.gates(lambda: floats(rng, s.cells)),
        weights(rng, kind, s.outputs, s.cells) if s.projected else None,
        floats(rng, s.outputs) if s.projected and s.biased else None,
    ]


def _states(s: Shape) -> list[T]:
    return [state("float32", s.batch, s.outputs), state("float32", s.batch, s.cells)]


def _norms(rng: np.random.Generator, s: Shape) -> list[T | None]:
    return s.gates(lambda: floats(rng, s.cells)) if s.normalised else []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(16))
def test_unidirectional(kind: str, seed: int) -> None:
    rng = np.random.default_rng([1, seed, KINDS.index(kind)])
    s, time = Shape.draw(rng), int(rng.integers(1, 6))
    options = _options(rng, time_major=bool(seed % 2))
    first = (time, s.batch) if seed % 2 else (s.batch, time)
    inputs = [T("float32", (*first, s.depth)), *_weights(rng, kind, s, diagonal=True), *_states(s), *_norms(rng, s)]
    model = build(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [T("float32", (*first, s.outputs))],
        ("UnidirectionalSequenceLSTMOptions", options),
        3,
    )
    x = [normal(rng, *first, s.depth) for _ in range(2)]
    assert_same_runs(model, [[x[0]], [x[1]], [np.zeros_like(x[0])]], (s, options))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_full(kind: str, seed: int) -> None:
    rng = np.random.default_rng([2, seed, KINDS.index(kind)])
    s, options = Shape.draw(rng), _options(rng, kernel_type=0)
    inputs = [T("float32", (s.batch, s.depth)), *_weights(rng, kind, s), *_states(s), *_norms(rng, s)]
    model = build("LSTM", inputs, [T("float32", (s.batch, s.outputs))], ("LSTMOptions", options), 4)
    assert_same_runs(model, [[normal(rng, s.batch, s.depth)] for _ in range(3)], (s, options))


def _bidirectional(
    rng: np.random.Generator, kind: str, auxiliary: int, s: Shape, **fixed: object
) -> tuple[bytes, list[T]]:
    """`auxiliary`: 0 none, 1 the backward cell's input, 2 with weights of its own."""
    options = _options(rng, time_major=bool(rng.integers(0, 2)), merge_outputs=bool(rng.integers(0, 2))) | fixed
    time, extra = int(rng.integers(1, 5)), s.depth if auxiliary == 1 else int(rng.integers(1, 20))
    first = (time, s.batch) if options["time_major"] else (s.batch, time)
    given = [T("float32", (*first, s.depth))] + [T("float32", (*first, extra))] * (auxiliary > 0)
    more = [s.gates(lambda: weights(rng, kind, s.cells, extra), absent=auxiliary < 2) for _ in range(2)]
    inputs = [given[0], *_weights(rng, kind, s), *_weights(rng, kind, s), *_states(s), *_states(s)]
    inputs += [given[1] if auxiliary else None, *more[0], *more[1]]
    columns = (2 * s.outputs,) if options["merge_outputs"] else (s.outputs, s.outputs)
    model = build(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [T("float32", (*first, n)) for n in columns],
        ("BidirectionalSequenceLSTMOptions", options),
        3,
    )
    return model, given


@pytest.mark.slow
@pytest.mark.parametrize("auxiliary", range(3))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_bidirectional(kind: str, auxiliary: int, seed: int) -> None:
    rng = np.random.default_rng([3, seed, KINDS.index(kind), auxiliary])
    s = Shape.draw(rng, normalised=False)
    fixed = {} if s.batch == 1 else {"merge_outputs": False} if rng.random() < 0.5 else {"time_major": True}
    model, given = _bidirectional(rng, kind, auxiliary, s, **fixed)
    assert_same_runs(model, [[normal(rng, *t.shape) for t in given] for _ in range(2)], s)


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sums_beyond_float32(seed: int, time_major: bool) -> None:
    """Products of float weights become the largest float32: those of one row with what they are added to."""
    rng = np.random.default_rng([7, seed, int(time_major)])
    s = Shape.draw(rng, normalised=False, projected=True, batch=int(rng.integers(1, 5)))
    first = (3, s.batch) if time_major else (s.batch, 3)
    inputs = [T("float32", (*first, s.depth)), *_weights(rng, "float32", s), *_states(s)]
    inputs[16] = T("float32", (s.outputs, s.cells), value=rng.uniform(-3e38, 3e38, (s.outputs, s.cells)))
    options = _options(rng, time_major=time_major) | {"proj_clip": 0.0, "fused_activation_function": 4}
    outputs = [T("float32", (*first, s.outputs))]
    kind = ("UnidirectionalSequenceLSTMOptions", options)
    model = build("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs, kind, 3)
    assert_same_runs(model, [[normal(rng, *first, s.depth)] for _ in range(3)], (s, options))
    given = Shape.draw(rng, normalised=False, batch=1)
    model, operands = _bidirectional(rng, "float32", seed % 3, given, fused_activation_function=4)
    assert_same_runs(model, [[normal(rng, *t.shape) * np.float32(1e36) for t in operands]], given)


def _integer_operands(rng: np.random.Generator, s: Shape) -> tuple[T, list[T | None], T, list[T]]:
    """x, positions 1 to 23, y and intermediates."""
    points = [int(n) for n in rng.integers(-128, 128, 3)]
    of_state = power(rng, -8, -6)
    x = T("int8", (), power(rng, -7, -4), points[0])
    inputs: list[T | None] = s.gates(lambda: codes(rng, "int8", -9, -6, s.cells, s.depth))
    inputs += s.gates(lambda: codes(rng, "int8", -9, -6, s.cells, s.outputs))
    inputs += s.gates(lambda: codes(rng, "int16", -17, -14, s.cells), absent=not s.peephole)[:3]
    inputs += s.gates(lambda: T("int32", (s.cells,), 1e-5, value=rng.integers(-20000, 20000, s.cells)))
    inputs += [
        codes(rng, "int8", -9, -6, s.outputs, s.cells) if s.projected else None,
        T("int32", (s.outputs,), 1e-5, value=rng.integers(-2000, 2000, s.outputs))
        if s.projected and s.biased
        else None,
        state("int8", s.batch, s.outputs, scale=of_state, zero_point=points[1]),
        state("int16", s.batch, s.cells, scale=float(2.0 ** rng.integers(-15, -8))),
    ]
    inputs += s.gates(lambda: codes(rng, "int16", -16, -12, s.cells)) if s.normalised else []
    hidden = (power(rng, -8, -6), points[2]) if s.projected else (of_state, points[1])
    between = [T("int16", (1,), power(rng, -13, -10)) for _ in range(4)] + [T("int8", (1,), *hidden)]
    return x, inputs, T("int8", (), of_state, points[1]), between


def test_tables_are_made_when_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """65,536 sigmoids take a minute where nothing is compiled, as when operators are only listed."""

    def made(cell_bits: int) -> None:
        raise AssertionError(f"prepare made tables for {cell_bits} integer bits")

    monkeypatch.setattr(lstm_integers, "curves", made)
    rng = np.random.default_rng(7)
    s = Shape.draw(rng, projected=False, cells=8, outputs=8)
    x, inputs, y, between = _integer_operands(rng, s)
    given = T("int8", (s.batch, 3, s.depth), x.scale, x.zero_point)
    output = T("int8", (s.batch, 3, s.outputs), y.scale, y.zero_point)
    options = {"fused_activation_function": 4, "cell_clip": 0.0, "proj_clip": 0.0, "time_major": False}
    table = ("UnidirectionalSequenceLSTMOptions", options)
    allocate(build("UNIDIRECTIONAL_SEQUENCE_LSTM", [given, *inputs], [output], table, 3, between))


@pytest.mark.slow
@pytest.mark.parametrize("sequence", [True, False])
@pytest.mark.parametrize("seed", range(24))
def test_integer(seed: int, sequence: bool) -> None:
    rng = np.random.default_rng([4, seed, int(sequence)])
    s = Shape.draw(rng)
    options = {"fused_activation_function": 4, "cell_clip": float(rng.choice([0, 0, 0.7]))}
    options["proj_clip"] = float(rng.choice([0, 0.2]))
    x, inputs, y, between = _integer_operands(rng, s)
    first: tuple[int, ...] = (s.batch,)
    name, table = "LSTM", "LSTMOptions"
    if sequence:
        name, table = "UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions"
        options["time_major"] = bool(seed % 2)
        time = int(rng.integers(1, 5))
        first = (time, s.batch) if seed % 2 else (s.batch, time)
    given = T("int8", (*first, s.depth), x.scale, x.zero_point)
    output = T("int8", (*first, s.outputs), y.scale, y.zero_point)
    model = build(name, [given, *inputs], [output], (table, options), 3, between)
    runs = [[rng.integers(-128, 128, given.shape).astype(np.int8)] for _ in range(3)]
    assert_same_runs(model, runs, (s, options))


def test_constants_of_the_integer_form_are_found_by_their_types() -> None:
    rng = np.random.default_rng(8)
    s = Shape.draw(rng, cifg=False, peephole=True, normalised=True, projected=True, biased=True)
    s = replace(s, outputs=min(s.outputs, s.cells))
    x, inputs, y, between = _integer_operands(rng, s)
    given = T("int8", (s.batch, s.depth), x.scale, x.zero_point)
    output = T("int8", (s.batch, s.outputs), y.scale, y.zero_point)
    model = build("LSTM", [given, *inputs], [output], ("LSTMOptions", {"fused_activation_function": 4}), 3, between)
    step = prepare_alone(read(model), 0, PROFILES["litert-ref"])
    assert step.prepared is not None
    owners = [part.owner for part in parts_of(step.prepared.data, Multiplier)]
    norms = [f"layer_norms[{gate}]" for gate in range(4)]
    assert owners == ["peepholes[0]", "peepholes[1]", "peepholes[3]", *norms, ""]  # the last is that of hidden values
    assert {part.name for part in parts_of(step.prepared.data, ZeroPoint)} == {"hidden_zero_point", "state_zero_point"}
    assert len(list(parts_of(step.prepared.data, OutputStage))) == 3  # of input, state and projection


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_integer_with_narrow_products(seed: int) -> None:
    """Twelve intermediates; what the source reads beyond an array is a shift, which all but removes that product."""
    rng = np.random.default_rng([7, seed])
    s = Shape.draw(rng, cells=int(rng.integers(2, 40)), projected=True, biased=True, normalised=True)
    s = replace(s, outputs=min(s.outputs, s.cells))
    x, inputs, y, _ = _integer_operands(rng, s)
    inputs[18] = state("int16", s.batch, s.cells, scale=2.0**-15)
    between = []
    for _ in range(4):
        parts = [T("int8", (1,), power(rng, -6, -4), int(rng.integers(-60, 60))) for _ in range(2)]
        between += [T("int8", (1,), power(rng, -13, -10)), *parts]
    options = {"fused_activation_function": 4, "cell_clip": float(rng.choice([0, 0.3, 2]))}
    options["proj_clip"] = float(rng.choice([0, 0.2]))
    given = T("int8", (s.batch, s.depth), x.scale, x.zero_point)
    output = T("int8", (s.batch, s.outputs), y.scale, y.zero_point)
    model = build("LSTM", [given, *inputs], [output], ("LSTMOptions", options), 3, between)
    assert_same_runs(model, [[rng.integers(-128, 128, given.shape).astype(np.int8)] for _ in range(3)], (s, options))


@pytest.mark.parametrize("seed", range(10))
def test_basic(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    batch, depth, cells = (int(n) for n in rng.integers(1, [6, 40, 50]))

    def tensor(columns: int) -> T:
        return T("float32", (batch, columns))

    inputs = [
        tensor(depth),
        tensor(cells),
        floats(rng, 4 * cells, depth + cells),
        floats(rng, 4 * cells),
        tensor(cells),
    ]
    outputs = [tensor(cells), tensor(cells), tensor(depth + cells), tensor(4 * cells)]
    options = {"kernel_type": 1, "fused_activation_function": 4}
    model = build("LSTM", inputs, outputs, ("LSTMOptions", options), 2)
    assert_same_runs(model, [[normal(rng, batch, n) for n in (depth, cells, cells)] for _ in range(2)])


@pytest.mark.parametrize("seed", range(10))
def test_basic_quantized(seed: int) -> None:
    rng = np.random.default_rng([6, seed])
    batch, depth, cells = (int(n) for n in rng.integers(1, [6, 40, 50]))
    scale = power(rng, -9, -6)

    def narrow(columns: int) -> T:
        return T("uint8", (batch, columns), 1 / 128, 128)

    def wide(columns: int, log2: int) -> T:
        return T("int16", (batch, columns), 2.0**log2)

    shape = (4 * cells, depth + cells)
    w = T("uint8", shape, scale, int(rng.integers(1, 255)), value=rng.integers(0, 256, shape))
    bias = T("int32", (4 * cells,), scale / 128, value=rng.integers(-8000, 8000, 4 * cells))
    inputs = [narrow(depth), narrow(cells), w, bias, wide(cells, -11)]
    outputs = [narrow(cells), wide(cells, -11), narrow(depth + cells), wide(4 * cells, -12)]
    options = {"kernel_type": 1, "fused_activation_function": 4}
    model = build("LSTM", inputs, outputs, ("LSTMOptions", options), 2)
    runs: list[list[Array]] = [
        [
            rng.integers(0, 256, (batch, depth)).astype(np.uint8),
            rng.integers(0, 256, (batch, cells)).astype(np.uint8),
            rng.integers(-20000, 20000, (batch, cells)).astype(np.int16),
        ]
        for _ in range(2)
    ]
    assert_same_runs(model, runs)


def test_outputs_vary() -> None:
    """What the other tests compare is no constant: a float sequence has about as many values as elements."""
    rng = np.random.default_rng(7)
    s = Shape(3, 20, 16, 16, cifg=False, peephole=True, projected=False, biased=False, normalised=True)
    inputs = [T("float32", (4, 3, 20)), *_weights(rng, "int8", s), *_states(s), *_norms(rng, s)]
    options = {"fused_activation_function": 4, "time_major": True}
    model = build(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [T("float32", (4, 3, 16))],
        ("UnidirectionalSequenceLSTMOptions", options),
        3,
    )
    assert assert_same_runs(model, [[rng.standard_normal((4, 3, 20)).astype(np.float32)]]) > 180


def test_refused() -> None:
    rng = np.random.default_rng(8)
    s = Shape(2, 5, 4, 4, cifg=False, peephole=False, projected=False, biased=False, normalised=False)
    model, given = _bidirectional(rng, "float32", 0, s, merge_outputs=True, time_major=False)
    with pytest.raises(UndefinedResultError, match="merged"):
        tflq(model, [np.zeros(t.shape, np.float32) for t in given])
    inputs = [T("float32", (2, 5)), *_weights(rng, "float32", s), *_states(s)]
    inputs[5] = None
    model = build("LSTM", inputs, [T("float32", (2, 4))], ("LSTMOptions", {}), 2)
    with pytest.raises(ModelError, match="missing"):
        tflq(model, [np.zeros((2, 5), np.float32)])
