"""Models as quantization-aware training exports them become integer with the ranges and codes that they prescribe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support.float_graphs import FloatGraph
from tflq.comparison.results import Verdict
from tflq.errors import OptionError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, Operator, OperatorCode, Quantization, TensorType, view
from tflq.model.ir.model import enum
from tflq.quantization.recipe import BiasCorrection, Methods, Recipe, Refining, Rounding
from tflq.quantization.refine.groups import channel_groups
from tflq.quantization.result import Result
from tflq.quantization.scheme.float_graph import prepare

DENSE = {"fused_activation_function": 0, "keep_num_dims": False}
CONVERSIONS, LAYERS = ("QUANTIZE", "DEQUANTIZE"), ["FULLY_CONNECTED", "LEAKY_RELU", "FULLY_CONNECTED"]
EQUALIZED = Recipe(candidates=(Methods(0.5),))


def paired(g: FloatGraph, tensor: int, type_: str, scale: object, zero_point: int) -> int:
    """The tensor behind QUANTIZE and DEQUANTIZE, which is what such tools write for rounding in training."""
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    codes = g._tensor(g.shape(tensor), type_)
    quantization = Quantization(scales, np.full(scales.shape, zero_point, np.int64))
    g.tensors[codes] = replace(g.tensors[codes], quantization=quantization)
    result = g._tensor(g.shape(tensor), "float32")
    for name, source, target in (("QUANTIZE", tensor, codes), ("DEQUANTIZE", codes, result)):
        code = OperatorCode(enum("BuiltinOperator")[name], name, 2)
        if code not in g.codes:
            g.codes.append(code)
        g.operators.append(Operator(g.codes.index(code), (source,), (result if target == result else codes,), None))
    return result


def exported(type_: str) -> tuple[Model, np.ndarray]:
    """Two layers with every tensor rounded as in training, and the scales of the first one's weights."""
    shift = 0 if type_ == "int8" else 128
    g = FloatGraph(4)
    x = paired(g, g.given(1, 6), type_, 0.02, -3 + shift)
    weights = g.random.normal(0, 0.4, (5, 6)).astype(np.float32)
    scales = (np.abs(weights).max(1) / 120).astype(np.float32)
    x = g.op("FULLY_CONNECTED", [x, paired(g, g.constant(weights), type_, scales, shift), g.bias(5)], DENSE)[0]
    x = g.op("LEAKY_RELU", [paired(g, x, type_, 0.05, 7 + shift)], {"alpha": 0.3})[0]
    x = paired(g, x, type_, 0.04, 2 + shift)
    x = g.op("FULLY_CONNECTED", [x, g.weights(3, 5), g.bias(3)], DENSE)[0]
    paired(g, x, type_, 0.0625, -11 + shift)
    return read(write(g.model())), scales


pytestmark = pytest.mark.usefixtures("checked")


def rows(count: int = 40) -> list[list[np.ndarray]]:
    random = np.random.default_rng(7)
    return [[random.normal(0, 1, (1, 6)).astype(np.float32)] for _ in range(count)]


def names(model: Model) -> list[str]:
    return [o.builtin for o in view(model).ops]


def checked(result: Result) -> None:
    report = result.report.check.report
    assert report is None or report.verdict == Verdict.SAME
    assert not result.report.kept_float


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["fast", Recipe(), EQUALIZED], ids=["fast", "plain", "equalized"])
@pytest.mark.parametrize("type_", ["int8", "uint8"])
def test_ranges_of_quantize_and_dequantize_are_kept_exactly(type_: str, recipe: Recipe | str) -> None:
    model, scales = exported(type_)
    result = tflq.quantize(model, rows(), recipe)
    checked(result)
    graph = view(result.model)
    inner = [o for o, n in zip(graph.ops, names(result.model), strict=True) if n not in ("QUANTIZE", "DEQUANTIZE")]
    assert [n for n in names(result.model) if n not in ("QUANTIZE", "DEQUANTIZE")] == [
        "FULLY_CONNECTED",
        "LEAKY_RELU",
        "FULLY_CONNECTED",
    ]
    specs = [graph.tensors[t] for t in (inner[0].inputs[0], *(o.outputs[0] for o in inner))]
    assert {spec.type for spec in specs} == {TensorType.INT8}
    found = [(s.quantization.scale[0], s.quantization.zero_point[0]) for s in specs if s.quantization is not None]
    assert found == [(np.float32(s), z) for s, z in ((0.02, -3), (0.05, 7), (0.04, 2), (0.0625, -11))]
    weights = graph.tensors[inner[0].inputs[1]].quantization
    assert weights is not None
    np.testing.assert_array_equal(weights.scale, scales)


def test_uint8_pairs_leave_no_conversion() -> None:
    result = tflq.quantize(exported("uint8")[0], rows(), Recipe())
    assert names(result.model) == LAYERS


@pytest.mark.parametrize(("type_", "zero_point"), [("int8", 0), ("uint8", 128)])
def test_weights_get_the_codes_that_their_quantize_makes(type_: str, zero_point: int) -> None:
    """Halves go away from zero there, and are divided in float32."""
    g = FloatGraph(1)
    weights = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 127.0], [0.05, 0.15, 0.25, -0.35, -0.45, 12.7]], np.float32)
    rounded = paired(g, g.constant(weights), type_, [1.0, 0.1], zero_point)
    g.op("FULLY_CONNECTED", [g.given(1, 6), rounded, g.bias(2)], DENSE)
    result = tflq.quantize(read(write(g.model())), rows(), Recipe())
    checked(result)
    graph = view(result.model)
    codes = graph.constant(graph.op(0).inputs[1])
    assert codes is not None
    assert codes[0].tolist() == [1, 2, 3, -1, -2, 127]
    quotients = weights[1] / np.float32(0.1)
    assert codes[1].tolist() == np.trunc(quotients + np.copysign(np.float32(0.5), quotients)).tolist()


def test_what_an_integer_operator_reads_too_keeps_its_uint8_conversions() -> None:
    """Only codes that nothing but DEQUANTIZE reads stand for a range."""
    g = FloatGraph(2)
    x = paired(g, g.given(1, 6), "uint8", 0.02, 128)
    g.op("LEAKY_RELU", [x], {"alpha": 0.3})
    codes = g.operators[0].outputs[0]
    model = read(write(g.model([codes, g.operators[-1].outputs[0]])))
    assert len(prepare(model).graph.ops) == 3
    read_by_one = read(write(g.model()))
    assert len(prepare(read_by_one).graph.ops) == 1


def test_channels_with_prescribed_ranges_are_not_equalized() -> None:
    g = FloatGraph(3)
    x = g.op("FULLY_CONNECTED", [g.given(1, 6), g.weights(8, 6), g.bias(8)], DENSE)[0]
    rounded = g.op("FAKE_QUANT", [x], {"min": -1.0, "max": 2.0, "num_bits": 8, "narrow_range": False})[0]
    plain = FloatGraph(3)
    y = plain.op("FULLY_CONNECTED", [plain.given(1, 6), plain.weights(8, 6), plain.bias(8)], DENSE)[0]
    for graph, tensor in ((g, rounded), (plain, y)):
        graph.op("FULLY_CONNECTED", [tensor, graph.weights(4, 8), graph.bias(4)], DENSE)
    assert channel_groups(prepare(read(write(plain.model()))))
    assert not channel_groups(prepare(read(write(g.model()))))


def test_weights_that_training_rounded_keep_their_codes_unless_asked() -> None:
    g = FloatGraph(5)
    x = g.op("FULLY_CONNECTED", [g.given(1, 6), g.weights(8, 6), g.bias(8)], DENSE)[0]
    coarse, rounded = paired(g, x, "int8", 0.4, 0), paired(g, g.weights(8, 8), "int8", 0.004, 0)
    g.op("FULLY_CONNECTED", [coarse, rounded, g.bias(8)], DENSE)
    model = read(write(g.model()))
    gptq = Methods(refining=Refining(Rounding.GPTQ, BiasCorrection.EMPIRICAL, match_inputs=True))

    def codes(recipe: Recipe) -> list[int]:
        graph = view(tflq.quantize(model, rows(), recipe).model)
        values = graph.constant(graph.op(1).inputs[1])
        assert values is not None
        return [int(v) for v in values.reshape(-1)]

    plain = codes(Recipe())
    assert codes(Recipe(candidates=(gptq,))) == plain
    assert codes(Recipe(candidates=(gptq,), refine_trained=True)) != plain


def test_only_trained_weights_can_be_refined_again() -> None:
    g = FloatGraph(5)
    g.op("FULLY_CONNECTED", [g.given(1, 6), g.weights(8, 6), g.bias(8)], DENSE)
    with pytest.raises(OptionError, match="no weights that training has rounded"):
        tflq.quantize(read(write(g.model())), rows(), Recipe(refine_trained=True))


def scales_of(model: Model) -> set[tuple[float, int]]:
    """Scales and zero points of int8 tensors that have one; uint8 ones as int8."""
    found = set()
    for spec in view(model).tensors:
        q = spec.quantization
        if q is not None and q.scale.size == 1 and spec.type in (TensorType.INT8, TensorType.UINT8):
            shift = 128 if spec.type == TensorType.UINT8 else 0
            found.add((float(q.scale[0]), int(q.zero_point[0]) - shift))
    return found


@pytest.mark.parametrize("name", ["mnv4__pt2e_int8", "qat_float_qdq"])
def test_exports_become_integer_throughout_with_every_scale(name: str, shared: Path) -> None:
    """PyTorch's PT2E by litert-torch 0.10, whose float operators stand between pairs; Keras by TensorFlow 2.21."""
    model = tflq.load(shared / "suites" / "modern" / name / "model.tflite")
    spec, random = view(model).tensors[view(model).inputs[0]], np.random.default_rng(3)
    values = random.uniform(-1, 1, (16, *spec.shape)).astype(np.float32)
    if spec.type == TensorType.INT8:
        values = random.integers(-128, 128, (16, *spec.shape)).astype(np.int8)
    result = tflq.quantize(model, [[row] for row in values], Recipe())
    checked(result)
    assert scales_of(model) <= scales_of(result.model)
    graph = view(result.model)
    edges = {t for op in graph.ops if op.builtin in CONVERSIONS for t in (*op.inputs, *op.outputs)}
    assert not [
        t for op in graph.ops for t in op.outputs if graph.tensors[t].type == TensorType.FLOAT32 and t not in edges
    ]
