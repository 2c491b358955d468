"""Loops: bodies in integers, calibrated over the float loop's iterations, with the bits of live LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support.float_graphs import FloatGraph
from tflq.engine.api.steps import Stepper
from tflq.engine.runtimes import Step
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, Operator, OperatorCode, Record, TensorType, view
from tflq.model.ir.schema import enum
from tflq.quantization.draft import options
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.recipe.files import read_budget
from tflq.quantization.recipe.recipe import Methods, Recipe
from tflq.quantization.recipe.refining import BiasCorrection, Refining

DENSE, PLAIN = {"fused_activation_function": 0, "keep_num_dims": False}, {"fused_activation_function": 0}
STEPS, SIZE, UNITS = 6, 4, 5
REFINED = Recipe(candidates=(Methods(refining=Refining(bias=BiasCorrection.EMPIRICAL)),))


def _graph(like: FloatGraph | None, seed: int) -> FloatGraph:
    g = FloatGraph(seed)
    if like is not None:
        g.codes, g.buffers = like.codes, like.buffers
    return g


def _variables(g: FloatGraph) -> tuple[int, int, int, int]:
    """The number of iterations, a state, a list that nobody reads, and a sequence."""
    return g.given_integers(), g.given(1, UNITS), g.given(1, UNITS), g.given(1, STEPS, SIZE)


def _next(g: FloatGraph, state: int, row: int) -> int:
    seen = g.op("FULLY_CONNECTED", [row, g.weights(UNITS, SIZE), g.bias(UNITS)], DENSE)[0]
    kept = g.op("FULLY_CONNECTED", [state, g.weights(UNITS, UNITS), g.bias(UNITS)], DENSE)[0]
    gate = g.unary("LOGISTIC", g.op("ADD", [seen, kept], PLAIN)[0])
    return g.op("ADD", [g.op("MUL", [gate, state], PLAIN)[0], g.unary("TANH", seen)], PLAIN)[0]


def recurrent(reads_state: bool = False, swaps: bool = False) -> Model:
    """A loop over the rows of a sequence, before and after which other operators compute."""
    g = _graph(None, 1)
    cond, body = _graph(g, 2), _graph(g, 3)
    number, *floats = _variables(cond)
    go_on = cond.op("LESS", [number, cond.constant(STEPS, "int32")], types=("bool",))[0]
    if reads_state:
        few = cond.op(
            "LESS",
            [
                cond.op("SUM", [floats[0], cond.constant([0, 1], "int32")], {"keep_dims": False})[0],
                cond.constant(np.float32(100)),
            ],
            types=("bool",),
        )[0]
        go_on = cond.op("LOGICAL_AND", [go_on, few], types=("bool",))[0]
    number, state, _, sequence = _variables(body)
    row = body.op("GATHER", [sequence, number], {"axis": 1, "batch_dims": 0})[0]
    after = _next(body, state, row)
    following = body.op("ADD", [number, body.constant(1, "int32")], PLAIN, types=("int32",))[0]
    last = [following, after, state if swaps else body.unary("TANH", after), sequence]
    x = g.given(1, STEPS, SIZE)
    entry = g.op("MUL", [x, g.constant(np.full((1, 1, SIZE), 0.75))], PLAIN)[0]
    start = [g.constant(0, "int32"), g.constant(np.zeros((1, UNITS))), g.constant(np.ones((1, UNITS))), entry]
    results = [g._tensor(g.shape(t), kind) for t, kind in zip(start, ["int32", *["float32"] * 3], strict=True)]
    _add(g, "WHILE", start, results, options("WhileOptions", cond_subgraph_index=1, body_subgraph_index=2))
    joined, out = g._tensor((1, 2 * UNITS), "float32"), g._tensor((1, 3), "float32")
    _add(g, "CONCATENATION", results[1:3], [joined], options("ConcatenationOptions", axis=1, **PLAIN))
    weights = [joined, g.weights(3, 2 * UNITS), g.bias(3)]
    _add(g, "FULLY_CONNECTED", weights, [out], options("FullyConnectedOptions", **DENSE))
    main = g.model([out])
    graphs = (main.subgraphs[0], cond.model([go_on]).subgraphs[0], body.model(last).subgraphs[0])
    return read(write(replace(main, operator_codes=tuple(g.codes), buffers=tuple(g.buffers), subgraphs=graphs)))


def _add(g: FloatGraph, name: str, inputs: list[int], outputs: list[int], record: Record) -> None:
    """An operator whose outputs are known, as those of a loop whose subgraphs are not yet in the model."""
    code = OperatorCode(enum("BuiltinOperator")[name], name, 1)
    if code not in g.codes:
        g.codes.append(code)
    g.operators.append(Operator(g.codes.index(code), tuple(inputs), tuple(outputs), record))


def rows(count: int, seed: int = 1) -> list[list[np.ndarray]]:
    values = np.random.default_rng(seed).normal(0, 1, (count, 1, STEPS, SIZE)).astype(np.float32)
    return [[row] for row in values]


def in_litert(path: Path, samples: list[list[np.ndarray]], resolver: str) -> list[np.ndarray]:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    kinds = {} if resolver == "BUILTIN" else {"experimental_op_resolver_type": litert.OpResolverType[resolver]}
    interpreter = litert.Interpreter(str(path), num_threads=1, **kinds)
    interpreter.allocate_tensors()
    found = []
    for (row,) in samples:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], row)
        interpreter.invoke()
        found.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy())
    return found


@pytest.mark.parametrize("mode", ["int8", "int16x8"])
@pytest.mark.parametrize("swaps", [False, True])
def test_integer_loops_have_litert_s_bits(mode: str, swaps: bool, tmp_path: Path) -> None:
    model = recurrent(swaps=swaps)
    result = tflq.quantize(model, rows(40), replace(REFINED, mode=mode))
    graph, width = view(result.model), TensorType[mode.partition("x")[0].upper()]
    (loop,) = (op for op in graph.ops if op.builtin == "WHILE")
    assert [graph.tensors[t].type for t in loop.inputs] == [TensorType.INT32, width, width, width]
    assert not [
        t
        for k in (1, 2)
        for t in view(result.model, k).inputs
        if view(result.model, k).tensors[t].type == TensorType.FLOAT32
    ]
    assert not result.report.kept_float
    assert result.report.comparison.leading > 25
    tflq.save(result.model, path := tmp_path / "made.tflite")
    spec = graph.tensors[graph.inputs[0]]
    assert spec.quantization is not None
    scale, zero = spec.quantization.scale[0], int(spec.quantization.zero_point[0])
    limits = np.iinfo(spec.type.label)
    codes = [
        [np.clip(np.rint(row / scale) + zero, limits.min, limits.max).astype(limits.dtype)] for (row,) in rows(12, 5)
    ]
    for resolver, profile in (("BUILTIN_REF", "litert-ref"), ("BUILTIN", "litert-xnnpack")):
        stepper = Stepper(result.model, profile)
        ours = [stepper.run(Step(None, {"0": row})).outputs["0"] for (row,) in codes]
        np.testing.assert_array_equal(ours, in_litert(path, codes, resolver))


def test_figures_are_those_against_the_float_loop() -> None:
    """Not against the model whose loops are integer already."""
    model = recurrent()
    result = tflq.quantize(model, rows(40), Recipe())
    other = compare_models(model, result.model, [{view(model).inputs[0]: row} for (row,) in rows(40)])
    assert result.report.comparison.leading == pytest.approx(other.leading, abs=1e-9)
    named = {t.index: t.op for t in result.report.comparison.tensors}
    assert named
    assert {index: view(model).op(index).builtin for index in named} == named


@pytest.mark.parametrize(
    ("build", "recipe", "reason"),
    [
        (lambda: recurrent(reads_state=True), Recipe(), "its condition reads floats"),
        (recurrent, Recipe(keep_float=("WHILE",)), "asked for"),
    ],
)
def test_other_loops_stay_in_float(build: Callable[[], Model], recipe: Recipe, reason: str) -> None:
    result = tflq.quantize(build(), rows(20), recipe)
    (remark,) = (r for r in result.report.kept_float if r.op == "WHILE")
    assert remark.text == reason
    (loop,) = (op for op in view(result.model).ops if op.builtin == "WHILE")
    assert view(result.model).tensors[loop.inputs[1]].type == TensorType.FLOAT32


def test_a_budget_keeps_loops_in_float() -> None:
    result = tflq.quantize(recurrent(), rows(20), Recipe(budget=read_budget("sqnr>=20")))
    (loop,) = (op for op in view(result.model).ops if op.builtin == "WHILE")
    assert view(result.model).tensors[loop.inputs[1]].type == TensorType.FLOAT32
