"""Notes on portable models: silent on one that is portable, and one for each rule that is broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from support import suites
from support.commands import tflq, validate
from support.each import each
from support.portable import below, portable
from tflq import lint, save
from tflq.diagnosis.linting.portable import portable_counts
from tflq.diagnosis.linting.rules import Level
from tflq.model.ir import Model, TensorType, view
from tflq.model.ir.model import enum
from tflq.quantization.params import Params

DIGITS = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


def notes(model: Model) -> list[tuple[str, int]]:
    found = lint(model, is_portable=True).findings
    assert not [f for f in found if f.level is not Level.NOTE], found
    return [(f.rule, f.operator) for f in found]


def with_values(model: Model, operator: int, position: int, change: Callable[[np.ndarray], None]) -> Model:
    graph = view(model)
    tensor = graph.op(operator).inputs[position]
    codes = np.array(graph.constant(tensor))
    change(codes.reshape(-1))
    buffers = list(model.buffers)
    number = graph.tensor(tensor).buffer
    buffers[number] = replace(buffers[number], data=np.frombuffer(codes.tobytes(), np.uint8))
    return replace(model, buffers=tuple(buffers))


def with_scale(model: Model, tensor: int, change: Callable[[np.ndarray], np.ndarray]) -> Model:
    graph = view(model)
    quantization = graph.tensor(tensor).quantization
    assert quantization is not None
    tensors = list(graph.tensors)
    tensors[tensor] = replace(tensors[tensor], quantization=replace(quantization, scale=change(quantization.scale)))
    return replace(model, subgraphs=(replace(graph.record, tensors=tuple(tensors)),))


def add_one(codes: np.ndarray) -> None:
    codes[1] += 1


def test_a_portable_model_breaks_no_rule() -> None:
    model = portable(0)
    assert notes(model) == []
    assert portable_counts(model) == (3, 3)


@pytest.mark.parametrize("operator", [0, 1, 2])
def test_an_odd_weight_and_an_even_bias(operator: int) -> None:
    assert notes(with_values(portable(0), operator, 1, add_one)) == [("portable-parity", operator)]
    assert notes(with_values(portable(0), operator, 2, add_one)) == [("portable-parity", operator)]


@pytest.mark.parametrize("operator", [0, 1, 2])
def test_a_multiplier_that_is_a_power_of_two(operator: int) -> None:
    """One float32 step more is the power of two itself, or beyond."""
    model = portable(0)
    weights = view(model).op(operator).inputs[1]
    up = with_scale(model, weights, lambda scale: np.nextafter(scale, np.float32(np.inf)))
    assert ("portable-multiplier", operator) in [n for n in notes_of(up) if n[0] == "portable-multiplier"]


def notes_of(model: Model) -> list[tuple[str, int]]:
    return [(f.rule, f.operator) for f in lint(model, is_portable=True).findings if f.level is Level.NOTE]


def test_dense_weights_with_several_scales() -> None:
    model = portable(0)
    weights = view(model).op(2).inputs[1]
    graph = view(model)
    quantization = graph.tensor(weights).quantization
    assert quantization is not None
    tensors = list(graph.tensors)
    several = replace(quantization, scale=np.repeat(quantization.scale, 4), zero_point=np.zeros(4, np.int64))
    tensors[weights] = replace(tensors[weights], quantization=several)
    changed = replace(model, subgraphs=(replace(graph.record, tensors=tuple(tensors)),))
    assert notes_of(changed) == [("portable-dense", 2)]


def pointwise(op: str, scales: list[float], **fields: object) -> Model:
    """An operator of one or two int8 inputs, in place of FULLY_CONNECTED."""
    model = portable(0)
    graph = view(model)
    specs = [
        replace(graph.tensor(0), name=f"t{i}", quantization=Params.of(TensorType.INT8, scale, 0).quantization)
        for i, scale in enumerate(scales)
    ]
    count = len(specs)
    operator = replace(graph.op(2).record, opcode_index=0, inputs=tuple(range(count - 1)), outputs=(count - 1,))
    record = replace(
        graph.record,
        tensors=tuple(specs),
        inputs=operator.inputs,
        outputs=operator.outputs,
        operators=(replace(operator, options=None),),
    )
    code = replace(model.operator_codes[0], builtin_code=enum("BuiltinOperator")[op], name=op, version=2)
    return replace(model, subgraphs=(record,), operator_codes=(code,))


@each(
    ("op", "scales", "rules"),
    [
        ("ADD", [0.1, 0.1, 0.1], []),
        ("ADD", [0.1, 0.2, 0.2], []),
        ("ADD", [0.1, 0.3, 0.1], ["portable-sum"]),
        ("SUB", [0.3, 0.3, 0.1], ["portable-sum", "portable-sum"]),
        ("MUL", [0.1, 0.25, 0.1], []),
        ("MUL", [0.1, 0.3, 0.1], ["portable-product"]),
        ("QUANTIZE", [0.1, 0.1], []),
        ("QUANTIZE", [0.1, 0.2], ["portable-requantize"]),
        ("HARD_SWISH", [0.1, 0.1], ["portable-form"]),
        ("SOFTMAX", [0.1, 1 / 256], ["portable-form"]),
        ("RELU", [0.1, 0.1], []),
        ("RESHAPE", [0.1, 0.1], []),
    ],
)
def test_other_operators(op: str, scales: list[float], rules: list[str]) -> None:
    assert [rule for rule, _ in notes_of(pointwise(op, scales))] == rules


def test_scales_are_those_of_the_prover() -> None:
    assert 0 < 1 - float(below(2.0**-5)) * 2**5 < 2**-20


def test_lint_is_quiet_unless_asked() -> None:
    quiet = tflq("lint", DIGITS)
    assert (quiet.exit_code, "portable" in quiet.stdout) == (0, False), quiet.output
    asked = tflq("lint", DIGITS, "--portable", "--json")
    assert asked.exit_code == 0, asked.output  # notes only explain
    document = json.loads(asked.stdout)
    validate(document, "lint")
    assert {f["level"] for f in document["findings"]} == {"note"}
    shown = tflq("lint", DIGITS, "--portable")
    assert "0 errors, 0 warnings, 51 notes" in shown.stdout


def test_inspect_counts(tmp_path: object) -> None:
    path = f"{tmp_path}/portable.tflite"
    save(portable(0), path)
    assert "3 of 3 integer operators are the same on every runtime for certain\n" in tflq("inspect", path).stdout
    assert (
        "0 of 20 integer operators are the same on every runtime for certain; the others: `tflq prove"
        in tflq("inspect", DIGITS).stdout
    )
    unsized = suites.ROOT / "golden" / "models" / "digits_mobilenet_float.tflite"
    assert "for certain" not in tflq("inspect", unsized).stdout
