"""Normalizations with activations of 16 bits, or in float, where rows differ in variance."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support import commands
from support.commands import validate
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.comparison.results import Verdict
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import Model, TensorType, view
from tflq.quantization.judge.trials import normalizations
from tflq.quantization.recipe import PRESETS, Norms, Recipe
from tflq.quantization.recipe_files import read_budget
from tflq.quantization.result import Result
from tflq.quantization.scheme.float_graph import prepare

ROWS, WIDTH = 6, 16
MUL, ADD, SUB = ((f"{name}Options", {"fused_activation_function": 0}) for name in ("Mul", "Add", "Sub"))


def network(square: str) -> Model:
    """Return two dense layers with a layer norm, or an RMS norm (POW, MUL), and a residual sum in between."""
    rng = np.random.default_rng(3)
    tensors, ops = [T("float32", (1, ROWS, WIDTH))], list[Op]()

    def constant(value: Any, kind: str = "float32") -> int:
        array = np.asarray(value, kind)
        tensors.append(T(kind, array.shape, value=array))
        return len(tensors) - 1

    def op(name: str, inputs: list[int], options: Any = None, width: int = WIDTH) -> int:
        tensors.append(T("float32", (1, ROWS, width)))
        ops.append(Op(name, tuple(inputs), (len(tensors) - 1,), options))
        return len(tensors) - 1

    def dense(data: int) -> int:
        weights = constant(rng.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)))
        options = {"fused_activation_function": 0, "weights_format": 0, "keep_num_dims": True}
        return op("FULLY_CONNECTED", [data, weights, constant(np.zeros(WIDTH))], ("FullyConnectedOptions", options))

    def mean(data: int) -> int:
        return op("MEAN", [data, constant([2], "int32")], ("ReducerOptions", {"keep_dims": True}), 1)

    x = dense(0)
    if square == "SQUARED_DIFFERENCE":
        middle = mean(x)
        squares, centred = op(square, [x, middle], ("SquaredDifferenceOptions", {})), op("SUB", [x, middle], SUB)
    else:
        centred = x
        squares = op("POW", [x, constant(2.0)], ("PowOptions", {})) if square == "POW" else op("MUL", [x, x], MUL)
    root = op("RSQRT", [op("ADD", [mean(squares), constant(1e-6)], ADD, 1)], None, 1)
    y = dense(op("MUL", [op("MUL", [centred, root], MUL), constant(rng.uniform(0.5, 2, WIDTH))], MUL))
    y = dense(op("ADD", [x, y], ADD))
    return tflq.load(build(Graph(tensors, (0,), (y,), ops)))


def samples(count: int = 48) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(-4, 0, (count, 1, ROWS, 1)))
    return [[row] for row in np.float32(sizes * rng.normal(size=(count, 1, ROWS, WIDTH)))]


def quantized(square: str, norms: str = "auto", **fields: Any) -> Result:
    return tflq.quantize(network(square), samples(), Recipe(norms=norms, **fields))


def types(model: Model, op: str) -> set[str]:
    graph = view(model)
    return {TensorType(graph.tensors[o.outputs[0]].type).label for o in graph.ops if o.builtin == op}


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize(("square", "mode"), [("SQUARED_DIFFERENCE", "int8"), ("POW", "int8"), ("MUL", "int8x4")])
def test_rows_of_little_variance_get_16_bits(square: str, mode: str) -> None:
    result, narrow = quantized(square, mode=mode), quantized(square, "int8", mode=mode)
    norms = result.report.norms
    assert norms is not None
    assert norms.form is Norms.INT16
    assert norms.after > norms.before + 1.8
    assert types(result.model, "RSQRT") == {"int16"}
    assert types(narrow.model, "RSQRT") == {"int8"}
    assert result.report.comparison.sqnr > narrow.report.comparison.sqnr + 1
    assert result.report.check.report is not None
    assert result.report.check.report.verdict is Verdict.SAME
    names = {view(network(square)).op(index).builtin for index in norms.operators}
    assert {"RSQRT", "MEAN", "MUL"} <= names <= {"RSQRT", "MEAN", "MUL", "ADD", "SUB", square}


def test_float_leaves_the_operators_as_they_are() -> None:
    result = quantized("SQUARED_DIFFERENCE", "float")
    assert result.report.norms is not None
    assert types(result.model, "SQUARED_DIFFERENCE") == types(result.model, "RSQRT") == {"float32"}
    assert {remark.index for remark in result.report.kept_float} == set(result.report.norms.operators)


def test_there_is_nothing_to_widen_without_a_root_or_at_the_edges() -> None:
    tensors = [T("float32", (1, 4)), T("float32", (1, 4))]
    edge = tflq.load(build(Graph(tensors, (0,), (1,), [Op("RSQRT", (0,), (1,), None)])))
    assert not normalizations(prepare(edge))
    assert quantized("MUL", mode="int16x8").report.norms is None


def test_the_report_names_operators_of_the_source() -> None:
    result, graph = quantized("SQUARED_DIFFERENCE", "int16"), view(network("SQUARED_DIFFERENCE"))
    outputs = {tensor.index: tensor.op for tensor in result.report.comparison.tensors if tensor.index >= 0}
    assert all(graph.op(index).builtin in (op, "SQUARED_DIFFERENCE") for index, op in outputs.items())


def test_words_and_documents(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        replace(PRESETS["fast"], norms="int4")
    tflq.save(network("MUL"), tmp_path / "m.tflite")
    np.save(tmp_path / "x.npy", np.concatenate([row for (row,) in samples()]))
    (tmp_path / "r.json").write_text(json.dumps({"candidates": [{"equalize": 0.5}]}))
    words = ["m.tflite", "--calibration", "x.npy", "--recipe", "r.json", "-o", "o.tflite"]
    paths = [str(tmp_path / word) if "." in word else word for word in words]
    done = commands.tflq("quantize", *paths, "--norms", "int16", "--json")
    document = json.loads(done.stdout)
    validate(document, "quantize")
    assert document["norms"]["form"] == "int16"
    assert document["recipe"]["norms"] == "int16"
    assert {view(network("MUL")).op(index).builtin for index in document["norms"]["operators"]} >= {"RSQRT", "MEAN"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "no normalization"),
        ({"mode": "int16x8"}, "modes int8 and int8x4"),
        ({"budget": read_budget("sqnr>=5")}, "without a budget"),
    ],
)
@pytest.mark.parametrize("norms", [Norms.INT16, Norms.FLOAT])
def test_what_has_nothing_to_apply_to_is_refused(norms: Norms, changes: dict[str, Any], reason: str) -> None:
    rows = np.load("golden/models/digits_test.npz")["images"][:32]
    with pytest.raises(OptionError, match=reason):
        tflq.quantize("golden/models/digits_autoencoder_float.tflite", rows, Recipe(norms=norms, **changes), std=16)
