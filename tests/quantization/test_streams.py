"""Streaming models: integer states in variables, calibrated over steps in a row, with the bits of live LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support.float_graphs import FloatGraph
from support.running import litert, run_each
from tflq.comparison.results import Verdict
from tflq.engine.api.signature import Stepper
from tflq.engine.runtimes import Invocation
from tflq.errors import ModelError, OptionError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, Operator, OperatorCode, Record, SignatureDef, Subgraph, TensorSpec, TensorType, view
from tflq.model.ir.model import enum
from tflq.quantization.advice import advise
from tflq.quantization.draft import options
from tflq.quantization.frontier import Runner
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.recipe import Methods, Norms, Recipe
from tflq.quantization.result import Result
from tflq.quantization.samples import Calibration
from tflq.quantization.streams import stream_of

STEPS, DENSE = 12, {"fused_activation_function": 0, "keep_num_dims": False}
PLAIN = {"fused_activation_function": 0}
RESOLVERS = [
    ("BUILTIN_REF", "litert-ref"),
    ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "litert-opt"),
    ("BUILTIN", "litert-xnnpack"),
]


class StreamGraph(FloatGraph):
    """A float graph with variables; a second subgraph gives their first values."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.variables: dict[str, int] = {}
        self.first: list[Operator] = []
        self.last: list[Operator] = []
        self.between: list[tuple[int, Operator]] = []  # and the number of operators before it

    def code(self, name: str) -> int:
        """The index of an operator's code."""
        code = OperatorCode(enum("BuiltinOperator")[name], name, 1)
        if code not in self.codes:
            self.codes.append(code)
        return self.codes.index(code)

    def handle(self, name: str) -> int:
        """A variable's handle; nothing is appended to the graph."""
        self.tensors.append(TensorSpec(name, TensorType.RESOURCE, ()))
        record = options("VarHandleOptions", container="", shared_name=name)
        self.first.append(Operator(self.code("VAR_HANDLE"), (), (len(self.tensors) - 1,), record))
        return len(self.tensors) - 1

    def state(self, name: str, *shape: int) -> int:
        """The value of a variable."""
        self.variables[name] = self.handle(name)
        value = self._tensor(shape, "float32")
        self.computed.append(value)
        record = Record("ReadVariableOptions", {})
        self.first.append(Operator(self.code("READ_VARIABLE"), (self.variables[name],), (value,), record))
        self.inputs.append(value)  # until the graph is whole
        return value

    def assign(self, name: str, value: int) -> None:
        """Set a variable."""
        record = Record("AssignVariableOptions", {})
        self.last.append(Operator(self.code("ASSIGN_VARIABLE"), (self.variables[name], value), (), record))

    def pass_through(self, name: str, value: int) -> int:
        """Set a variable at this place, and read it again."""
        again = self._tensor(tuple(self.tensors[value].shape), "float32")
        self.computed.append(again)
        self.inputs.append(again)  # until the graph is whole
        for code, inputs, outputs in (("ASSIGN", (value,), ()), ("READ", (), (again,))):
            record = Record(f"{code.title()}VariableOptions", {})
            operator = Operator(self.code(f"{code}_VARIABLE"), (self.variables[name], *inputs), outputs, record)
            self.between.append((len(self.operators), operator))
        return again

    def stream(self, outputs: list[int], firsts: dict[str, np.ndarray], signature: str | None) -> Model:
        """The model, with a signature if it has a name."""
        init = StreamGraph(0)
        init.codes, init.buffers = self.codes, self.buffers
        for name, value in firsts.items():
            constant = init.constant(value)
            init.variables[name] = init.handle(name)
            init.assign(name, constant)
        call = Operator(self.code("CALL_ONCE"), (), (), options("CallOnceOptions", init_subgraph_index=1))
        reads = {t for operator in (*self.first, *(o for _, o in self.between)) for t in operator.outputs}
        inputs = tuple(t for t in self.inputs if t not in reads)
        body = list(self.operators)
        for place, operator in reversed(self.between):
            body.insert(place, operator)
        operators = (call, *self.first, *body, *self.last)
        graph = Subgraph(tuple(self.tensors), inputs, tuple(outputs), operators, "main")
        inner = Subgraph(tuple(init.tensors), (), (), (*init.first, *init.last), "init")
        named = SignatureDef(signature, tuple((f"in{k}", t) for k, t in enumerate(inputs)), (("out", outputs[0]),), 0)
        model = replace(self.model(outputs), operator_codes=tuple(self.codes), buffers=tuple(self.buffers))
        signatures = None if signature is None else (named,)
        return read(write(replace(model, subgraphs=(graph, inner), signature_defs=signatures)))


def gated(signature: str | None = None, first: float = 0.25) -> Model:
    """A cell with a gate, whose state TANH makes, and a ring of inputs."""
    g = StreamGraph(3)
    x, ring, state = g.given(1, 4), g.state("ring", 1, 12), g.state("state", 1, 6)
    begin, size = (g.constant(np.array(v, np.int32), "int32") for v in ([0, 4], [1, 8]))
    kept = g.op("SLICE", [ring, begin, size])[0]
    joined = g.op("CONCATENATION", [kept, x], {"axis": 1, **PLAIN})[0]
    seen = g.op("FULLY_CONNECTED", [joined, g.weights(6, 12), g.bias(6)], {**DENSE, "fused_activation_function": 1})[0]
    both = g.op("CONCATENATION", [seen, state], {"axis": 1, **PLAIN})[0]
    gate = g.unary("LOGISTIC", g.op("FULLY_CONNECTED", [both, g.weights(6, 12), g.bias(6)], DENSE)[0])
    fresh = g.op("MUL", [gate, seen], PLAIN)[0]
    mixed = g.op("FULLY_CONNECTED", [fresh, g.weights(6, 6), g.bias(6)], DENSE)[0]
    after = g.unary("TANH", g.op("ADD", [mixed, state], PLAIN)[0])
    out = g.op("FULLY_CONNECTED", [after, g.weights(5, 6), g.bias(5)], DENSE)[0]
    g.assign("ring", joined)
    g.assign("state", after)
    firsts = {"ring": np.zeros((1, 12), np.float32), "state": np.full((1, 6), first, np.float32)}
    return g.stream([out], firsts, signature)


def walk(count: int, seed: int = 1) -> list[list[np.ndarray]]:
    steps = np.cumsum(np.random.default_rng(seed).normal(0, 0.3, (count, 1, 4)), axis=0) * 0.9
    return [[row.astype(np.float32)] for row in np.sin(steps)]


def codes_of_steps(model: Model, steps: list[list[np.ndarray]]) -> list[np.ndarray]:
    spec = view(model).tensors[view(model).inputs[0]]
    assert spec.quantization is not None
    scale, zero = spec.quantization.scale[0], int(spec.quantization.zero_point[0])
    limits = np.iinfo(spec.type.label)
    return [np.clip(np.rint(row / scale) + zero, limits.min, limits.max).astype(limits.dtype) for (row,) in steps]


@pytest.fixture(scope="module")
def quantized() -> Result:
    return tflq.quantize(gated(), walk(30), Recipe())


@pytest.mark.parametrize(("resolver", "profile"), RESOLVERS)
@pytest.mark.parametrize("mode", ["int8", "int16x8"])
def test_litert_gives_the_same_bits_over_steps_in_a_row(
    mode: str, resolver: str, profile: str, quantized: Result, tmp_path: Path
) -> None:
    result = quantized if mode == "int8" else tflq.quantize(gated(), walk(30), Recipe(mode=mode))
    codes = codes_of_steps(result.model, walk(STEPS, seed=9))
    stepper = Stepper(result.model, profile)
    ours = [stepper.run(Invocation(None, {"0": row})).outputs["0"] for row in codes]
    theirs = run_each(litert(write(result.model), resolver), codes)
    np.testing.assert_array_equal(ours, theirs)
    assert len({row.tobytes() for row in ours}) > STEPS // 2, "the outputs move"


def test_states_are_integers_with_one_scale(quantized: Result) -> None:
    graph = view(quantized.model)
    reads = [op for op in graph.ops if op.builtin == "READ_VARIABLE"]
    assigned = {op.inputs[0]: graph.tensors[op.inputs[1]] for op in graph.ops if op.builtin == "ASSIGN_VARIABLE"}
    assert len(reads) == len(assigned) == 2
    for op in reads:
        one, other = graph.tensors[op.outputs[0]], assigned[op.inputs[0]]
        assert one.type == other.type == TensorType.INT8
        assert one.quantization is not None
        assert other.quantization is not None
        assert one.quantization.scale[0] == other.quantization.scale[0]
        assert one.quantization.zero_point[0] == other.quantization.zero_point[0]
    floats = [t for op in graph.ops for t in (*op.inputs, *op.outputs) if graph.tensors[t].type == TensorType.FLOAT32]
    assert not floats


def test_outputs_stay_near_the_float_model_from_their_own_states(quantized: Result) -> None:
    streamed, check = quantized.report.streamed, quantized.report.check
    assert streamed is not None
    assert (streamed.steps, streamed.variables) == (30, 2)
    assert streamed.sqnr > 20
    assert check.report is None or check.report.verdict == Verdict.SAME


def test_operators_are_numbered_as_in_the_step(quantized: Result) -> None:
    graph = view(gated())
    named = {t.index: t.op for t in quantized.report.comparison.tensors}
    assert named
    assert {index: graph.op(index).builtin for index in named} == named


def test_first_values_are_kept_as_codes() -> None:
    low, high = (tflq.quantize(gated(first=v), walk(30), Recipe()).model for v in (-0.7, 0.7))
    codes = codes_of_steps(low, walk(1))
    (one,), (other,) = (
        [Stepper(m, "litert-ref").run(Invocation(None, {"0": codes[0]})).outputs["0"]] for m in (low, high)
    )
    floats = [
        Stepper(gated(first=v), "litert-ref").run(Invocation(None, {"0": walk(1)[0][0]})).outputs["0"]
        for v in (-0.7, 0.7)
    ]
    spec = view(low).tensors[view(low).outputs[0]].quantization
    assert spec is not None
    real = (one.astype(np.float64) - spec.zero_point[0]) * spec.scale[0]
    assert np.abs(real - floats[0]).max() < np.abs(floats[1] - floats[0]).max() / 4
    assert not np.array_equal(one, other)


def test_signatures_and_float_edges_stay() -> None:
    recipe = Recipe(input_type="float32", output_type="float32")
    result = tflq.quantize(gated("listen"), walk(30), recipe)
    (signature,) = result.model.signature_defs or ()
    assert signature.signature_key == "listen"
    assert [name for name, _ in signature.inputs] == ["in0"]
    stepper = Stepper(result.model, "litert-ref")
    found = [stepper.run(Invocation("listen", {"in0": row})).outputs["out"] for (row,) in walk(STEPS)]
    assert found[0].dtype == np.float32
    graph = view(result.model)
    kept = {graph.tensors[op.outputs[0]].type for op in graph.ops if op.builtin == "READ_VARIABLE"}
    assert kept == {TensorType.INT8}


def _never_assigned(g: StreamGraph, x: int, state: int) -> None:
    g.op("ADD", [x, state], PLAIN)


def _written_alone(g: StreamGraph, x: int, state: int) -> None:
    g.assign("state", g.op("ADD", [x, state], PLAIN)[0])
    g.variables["other"] = g.handle("other")
    g.assign("other", x)


def _reset_to_a_constant(g: StreamGraph, x: int, state: int) -> None:
    g.op("ADD", [x, state], PLAIN)
    g.assign("state", g.constant(np.zeros((1, 4), np.float32)))


@pytest.mark.parametrize(
    ("write_step", "reason"),
    [(_never_assigned, "never assigned"), (_written_alone, "not read"), (_reset_to_a_constant, "no float")],
)
def test_other_uses_of_variables_are_refused(write_step: Callable[[StreamGraph, int, int], None], reason: str) -> None:
    g = StreamGraph(5)
    x, state = g.given(1, 4), g.state("state", 1, 4)
    write_step(g, x, state)
    model = g.stream([g.operators[-1].outputs[0]], {"state": np.zeros((1, 4), np.float32)}, None)
    with pytest.raises(ModelError, match=reason):
        stream_of(model)


def _delayed(g: StreamGraph, x: int, state: int) -> int:
    """The input itself is the state."""
    g.assign("state", x)
    return g.op("FULLY_CONNECTED", [g.op("SUB", [x, state], PLAIN)[0], g.weights(5, 4), g.bias(5)], DENSE)[0]


def _written_twice(g: StreamGraph, x: int, state: int) -> int:
    """The value in between is read again."""
    half = g.op("FULLY_CONNECTED", [state, g.weights(4, 4), g.bias(4)], DENSE)[0]
    again = g.pass_through("state", half)
    after = g.unary("TANH", g.op("ADD", [again, x], PLAIN)[0])
    g.assign("state", after)
    return g.op("MUL", [after, half], PLAIN)[0]


def _exchanged(g: StreamGraph, x: int, state: int) -> int:
    """Two states; one takes the value of the other."""
    other = g.state("other", 1, 4)
    mixed = g.unary(
        "TANH", g.op("FULLY_CONNECTED", [g.op("ADD", [x, other], PLAIN)[0], g.weights(4, 4), g.bias(4)], DENSE)[0]
    )
    g.assign("state", mixed)
    g.assign("other", state)
    return g.op("FULLY_CONNECTED", [g.op("ADD", [mixed, state], PLAIN)[0], g.weights(5, 4), g.bias(5)], DENSE)[0]


@pytest.mark.parametrize("write_step", [_delayed, _written_twice, _exchanged])
def test_states_are_taken_in_any_order(write_step: Callable[[StreamGraph, int, int], int], tmp_path: Path) -> None:
    g = StreamGraph(5)
    x, state = g.given(1, 4), g.state("state", 1, 4)
    out = write_step(g, x, state)
    model = g.stream([out], {name: np.zeros((1, 4), np.float32) for name in g.variables}, None)
    result = tflq.quantize(model, walk(40), Recipe())
    assert result.report.streamed is not None
    assert result.report.streamed.sqnr > 20
    graph = view(result.model)
    assert {graph.tensors[o.outputs[0]].type for o in graph.ops if o.builtin == "READ_VARIABLE"} == {TensorType.INT8}
    codes = codes_of_steps(result.model, walk(STEPS, seed=9))
    for resolver, profile in RESOLVERS:
        stepper = Stepper(result.model, profile)
        ours = [stepper.run(Invocation(None, {"0": row})).outputs["0"] for row in codes]
        np.testing.assert_array_equal(ours, run_each(litert(write(result.model), resolver), codes))


def test_each_sequence_begins_with_first_values() -> None:
    rows = [np.concatenate([row for (row,) in walk(20, seed)]) for seed in range(3)]
    made = tflq.quantize(gated(), rows, Recipe())
    assert made.report.streamed is not None
    assert (made.report.streamed.steps, made.report.streamed.sequences) == (60, 3)
    stacked = tflq.quantize(gated(), np.stack(rows), Recipe())
    assert tflq.save(stacked.model) == tflq.save(made.model)
    joined = tflq.quantize(gated(), np.concatenate(rows), Recipe())
    assert joined.report.streamed is not None
    assert joined.report.streamed.sequences == 1
    assert tflq.save(joined.model) != tflq.save(made.model), "other states, other ranges"


def test_operators_are_named_as_in_the_model() -> None:
    model = gated()
    (index,) = (op.index for op in view(model).ops if op.builtin == "MUL")
    kept = tflq.quantize(model, walk(20), Recipe(keep_float=(str(index),)))
    assert [(remark.op, remark.index) for remark in kept.report.kept_float] == [("MUL", index)]
    assert kept.report.recipe.keep_float == (str(index),)


def test_advice_is_tried_over_steps() -> None:
    recipe = Recipe()
    samples = Calibration(gated(), walk(20))
    result = tflq.quantize(gated(), samples, recipe)
    advice = advise(gated(), samples, recipe, result)
    assert any(remark.startswith("few samples: 20") for remark in advice.data)
    assert result.report.streamed is not None
    assert advice.written.sqnr == result.report.streamed.sqnr
    (wider,) = (trial for trial in advice.trials if trial.options == ("--mode", "int16x8"))
    again = tflq.quantize(gated(), samples, replace(recipe, mode="int16x8")).report.streamed
    assert again is not None
    assert wider.sqnr == again.sqnr > advice.written.sqnr


def test_what_streams_do_not_take_is_refused() -> None:
    with pytest.raises(OptionError, match="float_tail"):
        tflq.quantize(gated(), walk(20), Recipe(float_tail="TANH"))
    with pytest.raises(OptionError, match="norms"):
        tflq.quantize(gated(), walk(20), Recipe(norms=Norms.FLOAT))
    with pytest.raises(OptionError, match="portable"):
        tflq.quantize(gated(), walk(20), Recipe(portable=("all",)))
    with pytest.raises(ModelError, match="stays in float"):
        tflq.quantize(gated(), walk(20), Recipe(keep_float=("TANH",)))


def test_a_plain_model_is_no_stream() -> None:
    g = FloatGraph(1)
    g.op("FULLY_CONNECTED", [g.given(1, 4), g.weights(3, 4), g.bias(3)], DENSE)
    assert stream_of(read(write(g.model()))) is None
    assert Recipe().candidates == (Methods(),)


def test_compare_takes_samples_as_steps_in_a_row(quantized: Result) -> None:
    model, steps = gated(), walk(STEPS, seed=9)
    (index,) = view(model).outputs
    stepper = Stepper(model, "litert-ref")
    wide = np.array([stepper.run(Invocation(None, {"0": row})).outputs["0"] for (row,) in steps], np.float64)
    runner = Runner(model)
    for _ in range(2):  # each time from first values
        taken = [values[index] for values in runner.each({view(model).inputs[0]: row} for (row,) in steps)]
        np.testing.assert_array_equal(wide, taken)
    graph = view(quantized.model)
    narrow, params = Stepper(quantized.model, "litert-ref"), graph.tensors[graph.outputs[0]].quantization
    assert params is not None
    codes = [narrow.run(Invocation(None, {"0": row})).outputs["0"] for row in codes_of_steps(quantized.model, steps)]
    noise = (np.array(codes, np.float64) - params.zero_point[0]) * params.scale[0] - wide
    figures = compare_models(model, quantized.model, [{view(model).inputs[0]: row} for (row,) in steps])
    assert figures.leading == pytest.approx(
        10 * np.log10(np.square(wide - wide.mean(axis=0)).sum() * STEPS / (STEPS - 1) / np.square(noise).sum()),
        abs=0.01,
    )
