"""What a quantized model looks like: what stays float, which types callers see, what is shared, what is prescribed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.float_graphs import STEPS, Array, FloatGraph, memory, min_max, random_graph, samples
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.diagnosis.linting.lint import lint
from tflq.engine.api.interpreter import Interpreter
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, SignatureDef, TensorType, view
from tflq.quantization.build.writer import Assignment, activation_params, assign, rewritten, weight_params
from tflq.quantization.draft import IntegerModel
from tflq.quantization.params import Range, extent
from tflq.quantization.ranges.weights import RAISED, fitted_weights, raised
from tflq.quantization.recipe import Mode, Recipe
from tflq.quantization.scheme.float_graph import FloatModel, prepare
from tflq.quantization.scheme.scheme import Scheme, modes_of, scheme

WITHOUT_OPTIONS = {"fused_activation_function": 0}
IO = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.FLOAT32)


def names(model: Model) -> list[str]:
    """Operators in order."""
    return [o.builtin for o in view(model).ops]


def quantized(model: Model, mode: Mode = Mode.INT8, **fields: object) -> Model:
    recipe = replace(Recipe(mode=mode), **fields)  # type: ignore[arg-type]
    return min_max(model, samples(model, 0), recipe).integer.model


def run(model: Model, inputs: dict[int, Array]) -> list[Array]:
    """Outputs as float32; inputs are floats too, rounded to codes where the model takes these."""
    interpreter = Interpreter(model_content=write(model))
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs.values(), strict=True):
        interpreter.set_tensor(detail["index"], codes(value, detail))
    interpreter.invoke()
    return [reals(interpreter.get_tensor(d["index"]), d) for d in interpreter.get_output_details()]


def codes(value: Array, detail: Any) -> Array:
    kind = detail["dtype"]
    if value.dtype == kind:
        return value
    scale, zero_point = detail["quantization"]
    limits = np.iinfo(kind)
    made: Array = np.clip(np.rint(value / scale) + zero_point, limits.min, limits.max).astype(kind)
    return made


def reals(value: Array, detail: Any) -> Array:
    if value.dtype == np.float32:
        return value
    scale, zero_point = detail["quantization"]
    return np.asarray(scale * (value.astype(np.float32) - zero_point))


def two_layers() -> FloatGraph:
    g = FloatGraph(1)
    x = g.given(1, 8)
    hidden = g.op("FULLY_CONNECTED", [x, g.weights(6, 8), g.bias(6)], {**WITHOUT_OPTIONS, "keep_num_dims": False})[0]
    g.op("FULLY_CONNECTED", [hidden, g.weights(4, 6), g.bias(4)], {**WITHOUT_OPTIONS, "keep_num_dims": False})
    return g


def completed(g: FloatGraph) -> Model:
    return read(write(g.model()))


@each("given", IO)
@each("taken", IO)
@each("mode", [Mode.INT8, Mode.INT16X8, Mode.UINT8])
def test_callers_see_the_types_they_ask_for_and_about_the_same_values(
    mode: Mode, given: TensorType, taken: TensorType
) -> None:
    model = completed(two_layers())
    result = quantized(model, mode, input_type=given, output_type=taken)
    graph = view(result)
    assert [graph.tensors[t].type for t in (*graph.inputs, *graph.outputs)] == [given, taken]
    sample = samples(model, 0)[0]
    want, got = run(model, sample)[0], run(result, sample)[0]
    assert np.abs(got - want).max() < 0.1 * np.abs(want).max()


def test_names_of_inputs_outputs_and_signatures_stay() -> None:
    model = completed(two_layers())
    graph = view(model)
    signature = SignatureDef("serve", (("x", graph.inputs[0]),), (("y", graph.outputs[0]),))
    for io in (TensorType.INT8, TensorType.FLOAT32):
        result = quantized(replace(model, signature_defs=(signature,)), input_type=io, output_type=io)
        made = view(result)
        assert made.tensors[made.inputs[0]].name == graph.tensors[graph.inputs[0]].name
        assert result.signature_defs is not None
        assert result.signature_defs[0].inputs == (("x", made.inputs[0]),)
        assert result.signature_defs[0].outputs == (("y", made.outputs[0]),)


@pytest.mark.parametrize("word", ["0", "1", "FULLY_CONNECTED"])
def test_what_is_kept_in_float_stays_bit_for_bit(word: str) -> None:
    model = completed(two_layers())
    result = quantized(model, keep_float=(word,))
    kept = 2 if word == "FULLY_CONNECTED" else 1
    graph = view(result)
    made = [graph.tensors[o.outputs[0]].type for o in graph.ops]
    found = [op for op, kind in zip(names(result), made, strict=True) if kind == TensorType.FLOAT32]
    assert found.count("FULLY_CONNECTED") == kept
    if kept == 2:
        sample = samples(model, 0)[0]
        np.testing.assert_array_equal(run(result, sample)[0], run(model, sample)[0])


def test_conversions_are_shared_and_never_undo_each_other() -> None:
    for seed in range(20):
        model = random_graph(seed)
        result = quantized(model, input_type=TensorType.FLOAT32, output_type=TensorType.FLOAT32)
        graph, ops = view(result), names(result)
        made = {t: op for o, op in zip(graph.ops, ops, strict=True) for t in o.outputs}
        pairs = [(made.get(o.inputs[0]), op) for o, op in zip(graph.ops, ops, strict=True) if op == "QUANTIZE"]
        assert ("DEQUANTIZE", "QUANTIZE") not in pairs
        read_twice = Counter(
            (o.inputs[0], graph.tensors[o.outputs[0]].type, graph.tensors[o.outputs[0]].quantization.scale.tobytes())  # type: ignore[union-attr]
            for o, op in zip(graph.ops, ops, strict=True)
            if op == "QUANTIZE"
        )
        assert set(read_twice.values()) <= {1}


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(Mode))
def test_models_keep_the_rules_of_the_specification(mode: Mode) -> None:
    found = [f for seed in range(12) for f in lint(quantized(random_graph(seed), mode)).findings]
    assert {f.rule for f in found} <= {"float-inside", "float-between"}  # operators without weights may stay in float


def test_inputs_of_a_join_share_its_scale_unless_others_read_them() -> None:
    g = FloatGraph(2)
    a, b = g.given(1, 4), g.given(1, 4)
    near, far = g.unary("TANH", a), g.op("MUL", [b, g.constant([0.1])], WITHOUT_OPTIONS)[0]
    g.op("CONCATENATION", [near, far], {"axis": 1, **WITHOUT_OPTIONS})
    assert names(quantized(completed(g))) == ["TANH", "MUL", "QUANTIZE", "CONCATENATION"]  # TANH's scale is fixed
    g.unary("ABS", far)
    assert names(quantized(completed(g))).count("QUANTIZE") == 2


def stages(model: Model, mode: Mode = Mode.INT8) -> tuple[FloatModel, Scheme, Assignment, IntegerModel]:
    """Everything between a float model and its min-max form."""
    floats = prepare(model)
    plan = scheme(floats, modes_of(floats, mode, {})[0])
    ranges = {t: Range.of(-1.0, 1.0) for t in plan.observed}
    weights = {(m.operator, m.position): extent(floats.constants[m.tensor], m.axis) for m in plan.multiplied}
    activations, spanning = activation_params(plan, ranges), weight_params(plan, weights)
    fitted = fitted_weights(plan, activations, spanning)
    assignment = replace(assign(plan, activations, fitted, Recipe(mode=mode)), notes=raised(spanning, fitted))
    return floats, plan, assignment, rewritten(assignment)


def test_a_bias_too_great_for_its_type_raises_the_scale_of_its_channel_only() -> None:
    g = FloatGraph(3)
    x, values = g.given(1, 2), np.array([[1e-12, 1e-12], [0.5, 0.25], [0, 0]])
    g.op("FULLY_CONNECTED", [x, g.constant(values), g.constant([1.0, 1.0, 1.0])], {**WITHOUT_OPTIONS})
    _, _, assignment, _ = stages(completed(g))
    weights, bias = assignment.constants[0, 1], assignment.constants[0, 2]
    assert weights.params is not None
    assert bias.params is not None
    assert assignment.notes == {0: RAISED}
    assert np.abs(bias.codes.astype(np.int64)).max() <= 2**30
    np.testing.assert_allclose(bias.codes * bias.params.scale, 1.0, rtol=2**-14)
    assert weights.params.scale[1] == np.float32(0.5) / np.float32(127)


def test_fake_quant_ranges_are_honoured_exactly() -> None:
    g = FloatGraph(4)
    x = g.given(1, 6)
    options = {"min": -0.5, "max": 1.5, "num_bits": 8, "narrow_range": False}
    weights = g.op("FAKE_QUANT", [g.weights(3, 6)], {**options, "min": -0.25, "max": 0.25})[0]
    inside = g.op("FAKE_QUANT", [x], options)[0]
    dense = g.op("FULLY_CONNECTED", [inside, weights, g.bias(3)], WITHOUT_OPTIONS)[0]
    g.op("FAKE_QUANT", [dense], {**options, "min": -1.0, "max": 3.0})
    model = completed(g)
    result = quantized(model)
    specs = {t.name: t for t in view(result).tensors}
    assert names(result) == ["FULLY_CONNECTED"]
    graph = view(model)
    for tensor, scale, zero_point in ((graph.inputs[0], 2 / 255, -64), (graph.outputs[0], 4 / 255, -64)):
        found = specs[graph.tensors[tensor].name].quantization
        assert found is not None
        assert (found.scale[0], found.zero_point[0]) == (np.float32(scale), zero_point)
    found = view(result).tensors[view(result).op(0).inputs[1]].quantization
    assert found is not None
    assert set(found.scale) == {np.float32(0.25 / 127)}


def test_integer_weights_of_a_hybrid_model_keep_their_codes() -> None:
    model = completed(two_layers())
    hybrid = quantized(model, Mode.DYNAMIC)
    full = quantized(hybrid)
    assert sorted(weight_codes(full)) == sorted(weight_codes(hybrid))


def weight_codes(model: Model) -> list[bytes]:
    graph = view(model)
    specs = [graph.tensors[o.inputs[1]] for o in graph.ops]
    return [data.tobytes() for spec in specs if (data := model.buffers[spec.buffer].data) is not None]


def test_float16_weights_quantize_as_their_float32_values_do() -> None:
    model = completed(two_layers())
    halves = quantized(model, Mode.WEIGHTS, weights_type=TensorType.FLOAT16)
    assert names(halves) == ["DEQUANTIZE", "FULLY_CONNECTED"] * 2
    assert names(quantized(halves)) == ["FULLY_CONNECTED"] * 2


def test_what_is_integer_already_stays_and_its_float_island_joins_it() -> None:
    g = FloatGraph(5)
    x = g.given(1, 6)
    for name in ("ABS", "NEG", "TANH"):
        x = g.unary(name, x)
    model = completed(g)
    island = quantized(model, keep_float=("NEG",))
    assert names(island) == ["ABS", "DEQUANTIZE", "NEG", "QUANTIZE", "TANH"]
    given = [{view(island).inputs[0]: np.full((1, 6), 5, np.int8)}]
    whole = min_max(island, given, Recipe()).integer.model
    assert names(whole) == ["ABS", "MUL", "TANH"]  # NEG's own integer kernel negates codes
    assert {t.type for t in view(whole).tensors} == {TensorType.INT8}


def test_what_reads_shapes_needs_no_conversion() -> None:
    g = FloatGraph(6)
    x = g.unary("RELU", g.given(1, 6))
    g.op("SHAPE", [x], {"out_type": 2}, ("int32",))
    assert names(quantized(completed(g))) == ["RELU", "SHAPE"]


@pytest.mark.parametrize("seed", range(6))
def test_each_operator_may_have_a_mode_of_its_own(seed: int) -> None:
    model = random_graph(seed)
    floats = prepare(model)
    choices = [modes_of(floats, mode, {})[0] for mode in (Mode.INT8, Mode.INT16X8)]
    modes = tuple(choices[i % 2][i] for i in range(len(choices[0])))
    plan = scheme(floats, modes)
    ranges = {t: Range.of(-4.0, 4.0) for t in plan.observed}
    weights = {(m.operator, m.position): extent(floats.constants[m.tensor], m.axis) for m in plan.multiplied}
    result = rewritten(assign(plan, activation_params(plan, ranges), weight_params(plan, weights), Recipe()))
    run(result.model, samples(model, seed)[0])


def test_nothing_is_stored_that_nothing_uses() -> None:
    for seed in range(10):
        model = quantized(random_graph(seed))
        used = {t.buffer for t in view(model).tensors} | {0}
        assert used == set(range(len(model.buffers)))
        assert {o.record.opcode_index for o in view(model).ops} == set(range(len(model.operator_codes)))
        tensors = {t for o in view(model).ops for t in (*o.inputs, *o.outputs) if t >= 0}
        assert tensors | {*view(model).inputs} == set(range(len(view(model).tensors)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_lstm_cells_become_integer_without_ranges_of_their_inside(seed: int) -> None:
    g = FloatGraph(seed)
    g.given(1, 6, 4)
    memory(g)
    model = completed(g)
    result, sample = quantized(model), samples(model, 0)[0]
    assert names(result) == ["UNIDIRECTIONAL_SEQUENCE_LSTM"]
    want, got = run(model, sample)[0], run(result, sample)[0]
    assert np.abs(got - want).max() < 0.03


@pytest.mark.parametrize("mode", [Mode.INT8, Mode.INT16X8])
def test_callers_get_the_types_they_ask_for_even_where_an_operator_stays_float(mode: Mode) -> None:
    g = FloatGraph(8)
    g.unary("SIN", g.unary("NEG", g.unary("SIN", g.given(1, 6))))
    model, kind = completed(g), TensorType.INT8
    graph = view(quantized(model, mode, input_type=kind, output_type=kind))
    assert [graph.tensors[t].type for t in (*graph.inputs, *graph.outputs)] == [kind, kind]
    graph = view(quantized(model, mode))
    assert [graph.tensors[t].type for t in (*graph.inputs, *graph.outputs)] == [TensorType.FLOAT32] * 2


def test_what_an_integer_kernel_would_abort_on_stays_in_float() -> None:
    g = FloatGraph(9)
    x = g.op("MUL", [g.given(1, 6), g.constant([1000.0])], WITHOUT_OPTIONS)[0]
    y = g.op("ADD", [x, g.constant([1.0])], WITHOUT_OPTIONS)[0]
    g.op("GREATER", [x, y], {}, ("bool",))
    model = completed(g)
    built = min_max(model, samples(model, 0), Recipe())
    assert list(built.kept_float) == [2]
    assert "does not take it" in built.kept_float[2]


@pytest.mark.parametrize("mode", [Mode.INT8, Mode.INT16X8])
def test_what_an_integer_kernel_computes_wrongly_stays_in_float(mode: Mode) -> None:
    g = FloatGraph(9)
    g.op("SUM", [g.given(1, 6), g.constant([1], "int32")], {"keep_dims": False})
    built = min_max(completed(g), samples(completed(g), 0), Recipe(mode=mode))
    assert "as uint8" in built.kept_float[0]


#: Steps whose outputs jump where inputs differ a little.
JUMPING = ("choosing", "floating")
#: How far outputs may be from the float model's, as part of their range: some steps of the inputs' and outputs' codes.
SLACK = {
    Mode.INT8: 0.06,
    Mode.UINT8: 0.06,
    Mode.INT16X8: 0.02,
    Mode.DYNAMIC: 0.04,
    Mode.DYNAMICX4: 0.04,  # no weights here have whole blocks
    Mode.WEIGHTS: 0.02,
    Mode.INT8X4: 0.06,  # of the float model with weights of four bits
}
#: How much more where all rows of weights share one scale, though their magnitudes differ eightfold.
MORE = {"filtering": 3}


#: The dimension of output channels in weights that may have four bits.
CHANNELS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}


def with_weights_of_four_bits(model: Model) -> Model:
    """The float model, its weights rounded to 15 levels between plus and minus the greatest of their channel.

    Sums of few terms cancel, so that this alone moves an output by up to a third of all outputs' range.
    """
    graph, buffers = view(model), list(model.buffers)
    for operator, op in zip(graph.ops, names(model), strict=True):
        spec = graph.tensors[operator.inputs[1]] if op in CHANNELS else None
        data = None if spec is None else buffers[spec.buffer].data
        if spec is not None and data is not None and spec.type == TensorType.FLOAT32:
            weights = data.view(np.float32).reshape(spec.shape)
            others = tuple({*range(weights.ndim)} - {CHANNELS[op]})
            step = np.maximum(np.abs(weights).max(others, keepdims=True), np.float32(1e-30)) / np.float32(7)
            rounded = np.ascontiguousarray(np.rint(weights / step) * step)
            buffers[spec.buffer] = replace(buffers[spec.buffer], data=rounded.reshape(-1).view(np.uint8))
    return replace(model, buffers=tuple(buffers))


@pytest.mark.slow
@pytest.mark.parametrize("step", [s for s in dict.fromkeys(STEPS) if s.__name__ not in JUMPING])
def test_one_operator_alone_is_close_to_its_float_form(step: Callable[[FloatGraph], None]) -> None:
    for seed in range(12):
        g = FloatGraph(seed)
        g.given(1, 4, 4, 4)
        step(g)
        model = completed(g) if g.operators else None
        graph = None if model is None else view(model)
        if model is None or graph is None or any(graph.tensors[t].type != TensorType.FLOAT32 for t in graph.outputs):
            continue
        given = samples(model, seed)
        for mode in Mode:
            result = min_max(model, given, Recipe(mode=mode)).integer.model
            floats = with_weights_of_four_bits(model) if mode is Mode.INT8X4 else model
            for sample in given[:2]:
                for want, got in zip(run(floats, sample), run(result, sample), strict=True):
                    away, reach = np.abs(want - got).max(initial=0), np.abs(want).max(initial=1e-6)
                    allowed = SLACK[mode] * MORE.get(step.__name__, 1)
                    assert away <= allowed * reach, (seed, mode, names(model), away / reach)


@pytest.mark.parametrize(
    ("op", "modes"), [("EMBEDDING_LOOKUP", (Mode.DYNAMIC, Mode.WEIGHTS)), ("GATHER", (Mode.WEIGHTS,))]
)
def test_tables_of_rows_are_stored_in_eight_bits_with_a_scale_for_each(op: str, modes: tuple[Mode, ...]) -> None:
    g = FloatGraph(10)
    rows, table = g.given_integers(3), g.weights(5, 4)
    if op == "GATHER":
        g.op(op, [table, rows], {"axis": 0, "batch_dims": 0})
    else:
        g.op(op, [rows, table])
    model = completed(g)
    given = [{view(model).inputs[0]: np.array([4, 0, 2], np.int32)}]
    for mode in (Mode.DYNAMIC, Mode.WEIGHTS):
        result = min_max(model, given, Recipe(mode=mode)).integer.model
        stored = [t for t in view(result).tensors if t.type == TensorType.INT8]
        assert [None if t.quantization is None else t.quantization.scale.size for t in stored] == [5] * (mode in modes)
        want, got = run(model, given[0])[0], run(result, given[0])[0]
        assert np.abs(want - got).max() <= 0.005 * np.abs(want).max()


def test_operators_without_outputs_are_kept() -> None:
    """ASSIGN_VARIABLE and CALL_ONCE write no tensor."""
    one = T("float32", (1, 4), value=np.ones((1, 4), np.float32))
    main = Graph(
        [T("float32", (1, 4)), T("resource", ()), T("float32", (1, 4)), T("float32", (1, 4))],
        (0,),
        (3,),
        [
            Op("CALL_ONCE", (), (), ("CallOnceOptions", {"init_subgraph_index": 1})),
            Op("VAR_HANDLE", (), (1,), ("VarHandleOptions", {"container": "", "shared_name": "v"})),
            Op("READ_VARIABLE", (1,), (2,)),
            Op("ADD", (0, 2), (3,), ("AddOptions", WITHOUT_OPTIONS)),
            Op("ASSIGN_VARIABLE", (1, 3), ()),
        ],
    )
    handle = Op("VAR_HANDLE", (), (0,), ("VarHandleOptions", {"container": "", "shared_name": "v"}))
    first = Graph([T("resource", ()), one], (), (), [handle, Op("ASSIGN_VARIABLE", (0, 1), ())])
    made = quantized(read(build(main, first)))
    assert [name for name in names(made) if name.endswith("VARIABLE")] == ["READ_VARIABLE", "ASSIGN_VARIABLE"]
