"""Streaming models: integer states in variables, calibrated over steps in a row, with the bits of live LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support.float_graphs import FloatGraph
from tflq.comparison.verification import Verdict
from tflq.engine.api.steps import Stepper
from tflq.engine.runtimes import Step
from tflq.errors import ModelError, OptionError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, Operator, OperatorCode, Record, SignatureDef, Subgraph, TensorSpec, TensorType, view
from tflq.model.ir.schema import enum
from tflq.quantization.draft import options
from tflq.quantization.recipe.recipe import Methods, Recipe
from tflq.quantization.result import Result
from tflq.quantization.streams import stream_of

STEPS, DENSE = 24, {"fused_activation_function": 0, "keep_num_dims": False}
PLAIN = {"fused_activation_function": 0}


class StreamGraph(FloatGraph):
    """A float graph with variables; a second subgraph gives their first values."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.variables: dict[str, int] = {}
        self.first: list[Operator] = []
        self.last: list[Operator] = []

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

    def stream(self, outputs: list[int], firsts: dict[str, np.ndarray], signature: str | None) -> Model:
        """The model, with a signature if it has a name."""
        init = StreamGraph(0)
        init.codes, init.buffers = self.codes, self.buffers
        for name, value in firsts.items():
            constant = init.constant(value)
            init.variables[name] = init.handle(name)
            init.assign(name, constant)
        call = Operator(self.code("CALL_ONCE"), (), (), options("CallOnceOptions", init_subgraph_index=1))
        reads = {operator.outputs[0] for operator in self.first}
        inputs = tuple(t for t in self.inputs if t not in reads)
        operators = (call, *self.first, *self.operators, *self.last)
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


def in_litert(model: Model, path: Path, codes: list[np.ndarray], resolver: str) -> list[np.ndarray]:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    tflq.save(model, path)
    kinds = {} if resolver == "BUILTIN" else {"experimental_op_resolver_type": litert.OpResolverType[resolver]}
    interpreter = litert.Interpreter(str(path), num_threads=1, **kinds)
    interpreter.allocate_tensors()
    found = []
    for row in codes:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], row)
        interpreter.invoke()
        found.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy())
    return found


@pytest.fixture(scope="module")
def quantized() -> Result:
    return tflq.quantize(gated(), walk(60), Recipe())


@pytest.mark.parametrize(
    ("resolver", "profile"),
    [("BUILTIN_REF", "litert-ref"), ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "litert-opt"), ("BUILTIN", "litert-xnnpack")],
)
@pytest.mark.parametrize("mode", ["int8", "int16x8"])
def test_litert_gives_the_same_bits_over_steps_in_a_row(
    mode: str, resolver: str, profile: str, quantized: Result, tmp_path: Path
) -> None:
    result = quantized if mode == "int8" else tflq.quantize(gated(), walk(60), Recipe(mode=mode))
    codes = codes_of_steps(result.model, walk(STEPS, seed=9))
    stepper = Stepper(result.model, profile)
    ours = [stepper.run(Step(None, {"0": row})).outputs["0"] for row in codes]
    theirs = in_litert(result.model, tmp_path / "made.tflite", codes, resolver)
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
    assert (streamed.steps, streamed.variables) == (60, 2)
    assert streamed.sqnr > 20
    assert check.report is None or check.report.verdict == Verdict.SAME


def test_operators_are_numbered_as_in_the_step(quantized: Result) -> None:
    graph = view(gated())
    named = {t.index: t.op for t in quantized.report.comparison.tensors}
    assert named
    assert {index: graph.op(index).builtin for index in named} == named


def test_first_values_are_kept_as_codes() -> None:
    low, high = (tflq.quantize(gated(first=v), walk(60), Recipe()).model for v in (-0.7, 0.7))
    codes = codes_of_steps(low, walk(1))
    (one,), (other,) = ([Stepper(m, "litert-ref").run(Step(None, {"0": codes[0]})).outputs["0"]] for m in (low, high))
    floats = [
        Stepper(gated(first=v), "litert-ref").run(Step(None, {"0": walk(1)[0][0]})).outputs["0"] for v in (-0.7, 0.7)
    ]
    spec = view(low).tensors[view(low).outputs[0]].quantization
    assert spec is not None
    real = (one.astype(np.float64) - spec.zero_point[0]) * spec.scale[0]
    assert np.abs(real - floats[0]).max() < np.abs(floats[1] - floats[0]).max() / 4
    assert not np.array_equal(one, other)


def test_signatures_and_float_edges_stay() -> None:
    recipe = Recipe(input_type="float32", output_type="float32")
    result = tflq.quantize(gated("listen"), walk(60), recipe)
    (signature,) = result.model.signature_defs or ()
    assert signature.signature_key == "listen"
    assert [name for name, _ in signature.inputs] == ["in0"]
    stepper = Stepper(result.model, "litert-ref")
    found = [stepper.run(Step("listen", {"in0": row})).outputs["out"] for (row,) in walk(STEPS)]
    assert found[0].dtype == np.float32
    graph = view(result.model)
    kept = {graph.tensors[op.outputs[0]].type for op in graph.ops if op.builtin == "READ_VARIABLE"}
    assert kept == {TensorType.INT8}


def _never_assigned(g: StreamGraph, x: int, state: int) -> None:
    g.op("ADD", [x, state], PLAIN)


def _assigned_unchanged(g: StreamGraph, x: int, state: int) -> None:
    g.op("ADD", [x, state], PLAIN)
    g.assign("state", x)


def _assigned_twice(g: StreamGraph, x: int, state: int) -> None:
    for _ in range(2):
        g.assign("state", g.op("ADD", [x, state], PLAIN)[0])


@pytest.mark.parametrize(
    ("write_step", "reason"),
    [(_never_assigned, "never assigned"), (_assigned_unchanged, "no float"), (_assigned_twice, "then assigned once")],
)
def test_other_uses_of_variables_are_refused(write_step: Callable[[StreamGraph, int, int], None], reason: str) -> None:
    g = StreamGraph(5)
    x, state = g.given(1, 4), g.state("state", 1, 4)
    write_step(g, x, state)
    model = g.stream([g.operators[-1].outputs[0]], {"state": np.zeros((1, 4), np.float32)}, None)
    with pytest.raises(ModelError, match=reason):
        stream_of(model)


def test_what_streams_do_not_take_is_refused() -> None:
    with pytest.raises(OptionError, match="portable"):
        tflq.quantize(gated(), walk(20), Recipe(portable=("all",)))
    with pytest.raises(ModelError, match="stays in float"):
        tflq.quantize(gated(), walk(20), Recipe(keep_float=("TANH",)))


def test_a_plain_model_is_no_stream() -> None:
    g = FloatGraph(1)
    g.op("FULLY_CONNECTED", [g.given(1, 4), g.weights(3, 4), g.bias(3)], DENSE)
    assert stream_of(read(write(g.model()))) is None
    assert Recipe().candidates == (Methods(),)
