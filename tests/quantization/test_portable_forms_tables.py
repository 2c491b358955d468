"""Pointwise operators on int8 codes as tables: the right entries, the same bits in every runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.float_graphs import FloatGraph, min_max, samples
from support.graphs import Graph, Op, build
from support.running import litert, run_once
from support.single_op import T
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, view
from tflq.quantization.draft import IntegerModel
from tflq.quantization.portable.tables import in_float, lookup_for, shift_of, with_tables, without_powers
from tflq.quantization.recipe import Recipe
from tflq.quantization.scheme.float_graph import prepare

Array = np.ndarray[Any, Any]

MODERN = tuple(map(by_name, ("litert-ref", "litert-opt", "litert-xnnpack", "tflm", "tflm-cmsis-nn-single")))
OLD = (*MODERN, by_name("tflite-2.7-opt"), by_name("tf-2.3-opt"))
CODES = np.arange(-128, 128).astype(np.int8)
SHAPE = (1, 16, 4, 4)


def integer(data: bytes) -> IntegerModel:
    model = read(data)
    return IntegerModel(model, tuple(range(len(view(model).ops))), MappingProxyType({}))


def names(model: Model) -> list[str]:
    return [operator.name for operator in view(model).ops]


def result(model: Model, profile: Profile, *inputs: Array) -> Array:
    plan = make_plan(model, profile)
    return run(plan, dict(zip(plan.inputs, inputs, strict=True))).values[plan.outputs[0]]


def pointwise(op: str, type_: str, more: Sequence[T], options: tuple[str, Mapping[str, Any]] | None) -> bytes:
    """Return a model of one operator, on int8 codes or on floats."""
    scale, zero_point = FIXED.get(op, (0.04, -9))
    x, y = (T("int8", SHAPE, 0.05, 3), T("int8", SHAPE, scale, zero_point))
    if type_ == "float32":
        x = y = T("float32", SHAPE)
    inputs = [0, *range(2, 2 + len(more))]
    return build(Graph([x, y, *more], [0], [1], [Op(op, inputs, [1], options, 2 if op == "GELU" else 1)]))


FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
OPERATORS = [
    ("LOGISTIC", None),
    ("TANH", None),
    ("HARD_SWISH", None),
    ("ELU", None),
    ("RELU", None),
    ("RELU6", None),
    ("EXP", ("ExpOptions", {})),
    ("ABS", ("AbsOptions", {})),
    ("GELU", ("GeluOptions", {"approximate": False})),
    ("GELU", ("GeluOptions", {"approximate": True})),
    ("LEAKY_RELU", ("LeakyReluOptions", {"alpha": 0.2})),
]


@pytest.mark.parametrize(("op", "options"), OPERATORS)
def test_a_table_holds_the_nearest_codes(op: str, options: tuple[str, Mapping[str, Any]] | None) -> None:
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    changed, rewrites = with_tables(integer(pointwise(op, "int8", (), options)), MODERN)
    assert names(changed.model) == ["CAST", "ADD", "GATHER"]
    assert changed.operators == (-1, -1, 0)
    assert [(r.index, r.op, r.bytes) for r in rewrites] == [(0, op, 256)]
    reals = ((CODES.astype(np.float64) - 3) * np.float64(np.float32(0.05))).astype(np.float32).reshape(SHAPE)
    (floats,) = run_once(litert(pointwise(op, "float32", (), options), "AUTO"), [reals])
    scale, zero_point = FIXED.get(op, (0.04, -9))
    want = np.clip(floats.astype(np.float64) / scale + zero_point, -128, 127)
    got = result(changed.model, MODERN[0], CODES.reshape(SHAPE))
    assert np.abs(got - want).max() <= 0.5 + 1e-3  # nearest, up to the rounding of float kernels
    for kind in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"):
        (live,) = run_once(litert(write(changed.model), kind), [CODES.reshape(SHAPE)])
        np.testing.assert_array_equal(live, got)


def test_operators_that_move_codes_stay() -> None:
    x, y = T("int8", SHAPE, 0.05, 3), T("int8", SHAPE, 0.05, 3)
    given = integer(build(Graph([x, y], [0], [1], [Op("RELU", [0], [1], None, 2)])))
    changed, rewrites = with_tables(given, MODERN)
    assert names(changed.model) == ["RELU"]
    assert rewrites == ()


def test_a_quantize_between_scales_becomes_a_table() -> None:
    x, y = T("int8", SHAPE, 0.05, 3), T("int8", SHAPE, 0.07, -3)
    given = integer(build(Graph([x, y], [0], [1], [Op("QUANTIZE", [0], [1])])))
    changed, _ = with_tables(given, MODERN)
    assert names(changed.model) == ["CAST", "ADD", "GATHER"]


def test_older_runtimes_get_a_form_that_they_take() -> None:
    given = integer(pointwise("LOGISTIC", "int8", (), None))
    modern, _ = with_tables(given, MODERN)
    older, _ = with_tables(given, OLD)
    assert names(older.model) == ["RESHAPE", "DEQUANTIZE", "CAST", "GATHER"]
    want = result(modern.model, MODERN[0], CODES.reshape(SHAPE))
    for profile in OLD:
        np.testing.assert_array_equal(result(older.model, profile, CODES.reshape(SHAPE)), want)


def test_a_runtime_without_any_form_leaves_the_model_unchanged() -> None:
    runtimes = (*MODERN, by_name("tf-1.15-ref"))
    given = integer(pointwise("LOGISTIC", "int8", (), None))
    assert lookup_for(runtimes) is None
    assert with_tables(given, runtimes) == (given, ())


def swish(g: FloatGraph, x: int) -> None:
    g.op("MUL", [x, g.unary("LOGISTIC", x)], {"fused_activation_function": 0})


def hard_swish(g: FloatGraph, x: int) -> None:
    plain = {"fused_activation_function": 0}
    (shifted,) = g.op("ADD", [x, g.constant(3.0)], {**plain, "pot_scale_int16": False})
    (scaled,) = g.op("MUL", [g.unary("RELU6", shifted), g.constant(1 / 6)], plain)
    g.op("MUL", [x, scaled], plain)


def square(g: FloatGraph, x: int) -> None:
    g.op("MUL", [x, x], {"fused_activation_function": 0})


def logarithm(g: FloatGraph, x: int) -> None:
    (positive,) = g.op("MAXIMUM", [x, g.constant(0.1)], {})
    g.unary("LOG", positive)


CHAINS = {
    "swish": (swish, lambda x: x / (1 + np.exp(-x))),
    "hard swish": (hard_swish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "square": (square, np.square),
    "logarithm": (logarithm, lambda x: np.log(np.maximum(x, 0.1))),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_becomes_one_table(name: str) -> None:
    spelled, function = CHAINS[name]
    g = FloatGraph(4)
    (x,) = g.op("CONV_2D", [g.given(1, 6, 6, 3), g.weights(4, 1, 1, 3), g.bias(4)], CONV)
    spelled(g, x)
    g.op("CONV_2D", [len(g.tensors) - 1, g.weights(2, 1, 1, 4), g.bias(2)], CONV)
    model = g.model()
    kept = in_float(prepare(model), MODERN, range(len(view(model).ops)))
    assert set(kept) == set(range(1, len(view(model).ops) - 1))
    built = min_max(model, samples(model, 4), Recipe(keep_float=tuple(map(str, kept))))
    changed, rewrites = with_tables(built.integer, MODERN)
    assert names(changed.model) == ["CONV_2D", "CAST", "ADD", "GATHER", "CONV_2D"]
    assert len(rewrites) == 1
    graph = view(changed.model)
    source, table = graph.op(1).inputs[0], graph.op(3).inputs[0]
    before, after = (graph.tensors[t].quantization for t in (source, graph.op(3).outputs[0]))
    assert before is not None
    assert after is not None
    reals = (np.arange(-128, 128) - before.zero_point[0]) * before.scale.astype(np.float64)
    want = np.clip(function(reals) / after.scale.astype(np.float64) + after.zero_point[0], -128, 127)
    entries = graph.constant(table)
    assert entries is not None
    assert np.abs(entries - want).max() <= 0.5 + 1e-9


CONV = {"padding": 1, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}


def test_operators_that_two_chains_share_belong_to_both() -> None:
    g = FloatGraph(4)
    x = g.given(1, 6, 6, 3)
    gate = g.unary("LOGISTIC", x)
    g.op("MUL", [x, gate], {"fused_activation_function": 0})
    g.unary("RELU", gate)
    model = g.model()
    built = min_max(model, samples(model, 4), Recipe())
    changed, _ = with_tables(built.integer, MODERN)
    assert names(changed.model).count("GATHER") == 2
    assert not {"MUL", "LOGISTIC", "RELU"}.intersection(names(changed.model))


def product(shift: int, tables: int) -> IntegerModel:
    """Return a MUL whose multiplier is just below 2**-shift; `tables` of its operands are results of LOGISTIC."""
    one = float(np.nextafter(np.float32(2.0**-6), np.float32(0)))
    gate, image, y = T("int8", (1, 1, 1, 256), 1 / 256, -128), T("int8", (1, 256, 1, 256), one, 5), 2.0 ** (shift - 14)
    tensors = [gate, image, T("int8", (1, 256, 1, 256), y, -4), gate, image]
    ops = [Op("MUL", [3 if tables else 0, 1], [2], ("MulOptions", {"fused_activation_function": 0}), 2)]
    if tables:
        ops.insert(0, Op("LOGISTIC", [0], [3]))
    return integer(build(Graph(tensors[: 4 if tables else 3], [0, 1], [2], ops)))


@pytest.mark.parametrize("shift", [5, 7, 8, 9, 10])
@pytest.mark.parametrize("tables", [0, 1])
def test_a_product_without_ties_is_the_same_everywhere(shift: int, tables: int) -> None:
    given = product(shift, tables)
    changed, rewrites = with_tables(given, MODERN)
    assert shift_of(view(given.model).ops[-1]) == shift
    assert any(r.op == "MUL operand" for r in rewrites)
    rows, columns = CODES.reshape(1, 1, 1, 256), np.broadcast_to(CODES.reshape(1, 256, 1, 1), (1, 256, 1, 256))
    want = result(changed.model, MODERN[0], rows, columns)
    for profile in MODERN[1:]:
        np.testing.assert_array_equal(result(changed.model, profile, rows, columns), want)
    if not tables:
        ordinary = [result(given.model, profile, rows, columns) for profile in MODERN]
        assert any((other != ordinary[0]).any() for other in ordinary)


def test_a_product_whose_gate_is_odd_needs_no_table_for_the_image() -> None:
    changed, _ = with_tables(product(9, 1), MODERN)
    assert names(changed.model) == ["CAST", "ADD", "GATHER", "MUL"]


@each("zero_point", [-128, -5, 0, 77, 127])
@each("powers", [range(1, 9), range(3, 8), range(6, 7)])
def test_codes_move_by_one_and_lose_their_powers(zero_point: int, powers: range) -> None:
    moved = without_powers(CODES, zero_point, powers)
    values = moved.astype(np.int64) - zero_point
    assert np.abs(moved.astype(np.int64) - CODES).max() == 1
    assert not any(value and (value & -value).bit_length() - 1 in powers for value in values.tolist())
    assert moved[zero_point + 128] == zero_point


def test_tables_keep_the_tensors_that_refinement_asks_for() -> None:
    model = conv_gelu()
    built = min_max(model, samples(model, 2), Recipe())
    changed, _ = with_tables(built.integer, MODERN)
    before, after = view(built.integer.model), view(changed.model)
    for source, tensor in changed.tensors.items():
        assert before.tensors[built.integer.tensors[source]].name == after.tensors[tensor].name


def conv_gelu() -> Model:
    g = FloatGraph(6)
    (x,) = g.op("CONV_2D", [g.given(1, 4, 4, 3), g.weights(4, 1, 1, 3), g.bias(4)], CONV)
    g.op("GELU", [x], {"approximate": False})
    return g.model()
