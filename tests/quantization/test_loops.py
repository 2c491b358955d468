"""Loops: bodies in integers, calibrated over the float loop's iterations, with the bits of live LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tflq
from support.float_graphs import FloatGraph
from support.running import as_codes, litert, run_each
from tflq.engine.api.signature import Stepper
from tflq.engine.runtimes import Invocation
from tflq.errors import ModelError, OptionError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, Operator, OperatorCode, Record, TensorType, view
from tflq.model.ir.model import enum
from tflq.quantization.draft import options
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.recipe import BiasCorrection, Methods, Mode, Norms, Recipe, Refining
from tflq.quantization.recipe_files import read_budget

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


def recurrent(reads_state: bool = False, swaps: bool = False, idle: bool = False) -> Model:
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
    number, state, seen, sequence = _variables(body)
    after = state
    if not idle:
        after = _next(body, state, body.op("GATHER", [sequence, number], {"axis": 1, "batch_dims": 0})[0])
    following = body.op("ADD", [number, body.constant(1, "int32")], PLAIN, types=("int32",))[0]
    last = [following, after, seen if idle else state if swaps else body.unary("TANH", after), sequence]
    x = g.given(1, STEPS, SIZE)
    entry = g.op("MUL", [x, g.constant(np.full((1, 1, SIZE), 0.75))], PLAIN)[0]
    start = [
        g.constant(0, "int32"),
        g.constant(np.full((1, UNITS), float(idle))),
        g.constant(np.ones((1, UNITS))),
        entry,
    ]
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


@pytest.mark.parametrize("mode", ["int8", "int16x8"])
@pytest.mark.parametrize("swaps", [False, True])
def test_integer_loops_have_litert_s_bits(mode: str, swaps: bool) -> None:
    model = recurrent(swaps=swaps)
    result = tflq.quantize(model, rows(16), replace(REFINED, mode=mode))
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
    for resolver, profile in (("BUILTIN_REF", "litert-ref"), ("BUILTIN", "litert-xnnpack")):
        live, stepper = litert(write(result.model), resolver), Stepper(result.model, profile)
        codes = [as_codes(row, live.get_input_details()[0]) for (row,) in rows(6, 5)]
        ours = [stepper.run(Invocation(None, {"0": row})).outputs["0"] for row in codes]
        np.testing.assert_array_equal(ours, run_each(live, codes))


def test_figures_are_those_against_the_float_loop() -> None:
    """Not against the model whose loops are integer already."""
    model = recurrent()
    result = tflq.quantize(model, rows(16), Recipe())
    other = compare_models(model, result.model, [{view(model).inputs[0]: row} for (row,) in rows(16)])
    assert result.report.comparison.leading == pytest.approx(other.leading, abs=1e-9)
    named = {t.index: t.op for t in result.report.comparison.tensors}
    assert named
    assert {index: view(model).op(index).builtin for index in named} == named


def twice(model: Model, name: Callable[[str | None], str | None] = lambda name: f"{name}/first") -> Model:
    """A loop, and before it another of the same subgraphs, on values that are twice as large."""
    main, codes = model.subgraphs[0], [*model.operator_codes]
    loop = next(op.record for op in view(model).ops if op.builtin == "WHILE")
    again = (replace(main.tensors[t], name=name(main.tensors[t].name)) for t in loop.outputs)
    tensors = [*main.tensors, *again]
    first = len(main.tensors)
    scale = OperatorCode(enum("BuiltinOperator")["ADD"], "ADD", 1)
    codes = [*codes, scale]
    tensors.append(replace(main.tensors[loop.inputs[3]], name="wide", buffer=0))
    operators = list(main.operators)
    place = operators.index(loop)
    wide = Operator(
        codes.index(scale), (loop.inputs[3], loop.inputs[3]), (len(tensors) - 1,), options("AddOptions", **PLAIN)
    )
    other = replace(loop, inputs=(*loop.inputs[:3], len(tensors) - 1), outputs=tuple(range(first, first + 4)))
    operators[place:place] = [wide, other]
    made = replace(main, tensors=tuple(tensors), operators=tuple(operators), outputs=(*main.outputs, first + 1))
    return read(write(replace(model, operator_codes=tuple(codes), subgraphs=(made, *model.subgraphs[1:]))))


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("kept", [(), ("3",)])
def test_loops_that_share_a_body_get_one_each(kept: tuple[str, ...]) -> None:
    result = tflq.quantize(twice(recurrent()), rows(16), Recipe(keep_float=kept))
    assert [(r.index, r.text) for r in result.report.kept_float] == [(int(k), "asked for") for k in kept]
    assert all(t.sqnr > 20 for t in result.report.comparison.tensors if t.op == "WHILE")
    assert result.report.check.report.verdict.value == "same"


@pytest.mark.parametrize(("tail", "floats"), [("FULLY_CONNECTED", {3}), ("2..3", {2, 3}), ("1", {1, 2, 3})])
def test_a_float_tail_is_named_as_in_the_source(tail: str, floats: set[int]) -> None:
    result = tflq.quantize(recurrent(), rows(8), Recipe(float_tail=tail))
    assert {r.index for r in result.report.kept_float} == floats
    (loop,) = (op for op in view(result.model).ops if op.builtin == "WHILE")
    assert (view(result.model).tensors[loop.inputs[1]].type == TensorType.FLOAT32) == (1 in floats)


def test_biases_of_integer_loops_are_not_corrected() -> None:
    made = tflq.quantize(recurrent(), rows(8), Recipe()).model
    with pytest.raises(ModelError, match="subgraphs"):
        tflq.quantize(made, rows(8), requantize=True)


def test_tensors_that_share_a_name_are_not_taken_for_each_other() -> None:
    model = twice(recurrent(), lambda name: name)
    tensors = tflq.quantize(model, rows(16), Recipe(keep_float=("WHILE",))).report.comparison.tensors
    assert {t.op for t in tensors} == {"MUL", "ADD", "CONCATENATION", "FULLY_CONNECTED"}


@pytest.mark.parametrize(
    ("build", "recipe", "reason"),
    [
        (lambda: recurrent(reads_state=True), Recipe(), "its condition reads floats"),
        (recurrent, Recipe(keep_float=("WHILE",)), "asked for"),
        (recurrent, Recipe(budget=read_budget("sqnr>=20")), "a budget keeps loops in float"),
        (recurrent, Recipe(portable=("tflm", "litert-ref")), "a portable model keeps loops in float"),
        (recurrent, Recipe(mode=Mode.WEIGHTS), "mode weights leaves the operators that it runs in float"),
        (lambda: recurrent(idle=True), Recipe(), "no operator at its variables becomes integer"),
    ],
)
def test_other_loops_stay_in_float(build: Callable[[], Model], recipe: Recipe, reason: str) -> None:
    result = tflq.quantize(build(), rows(8), recipe)
    (remark,) = (r for r in result.report.kept_float if r.op == "WHILE")
    assert remark.text == reason
    (loop,) = (op for op in view(result.model).ops if op.builtin == "WHILE")
    assert view(result.model).tensors[loop.inputs[1]].type == TensorType.FLOAT32


def test_normalizations_of_16_bits_are_refused() -> None:
    """They change the tensors by which scores find the float loop's values."""
    with pytest.raises(OptionError, match="loops"):
        tflq.quantize(recurrent(), rows(8), Recipe(norms=Norms.INT16))


def test_the_report_states_that_loops_saw_all_samples() -> None:
    assert any("loops are fitted to all" in text for text in tflq.quantize(recurrent(), rows(16), Recipe()).report.data)
