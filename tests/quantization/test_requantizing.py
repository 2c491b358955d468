"""Integer models whose biases are improved: everything else stays, and models that cannot be are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from support.float_graphs import FloatGraph, min_max, samples
from tflq.comparison.results import Verdict
from tflq.errors import ModelError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, TensorType, view
from tflq.model.ir.constants import constant_of
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.recipe import Recipe

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"


def images(count: int, first: int = 0) -> list[np.ndarray]:
    rows = suites.digits().images[first : first + count]
    return [row[None] for row in rows]


def constants(model: Model) -> dict[str, tuple[TensorType | int, bytes, bytes, bytes]]:
    """Every constant by name: type, scales, zero points, codes."""
    found = {}
    for spec in view(model).tensors:
        value = constant_of(model, spec)
        if value is not None and spec.quantization is not None and spec.quantization.scale.size:
            q = spec.quantization
            found[spec.name or ""] = spec.type, q.scale.tobytes(), q.zero_point.tobytes(), value.tobytes()
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("checked")
def test_only_biases_change_and_the_model_comes_nearer_to_the_float_one() -> None:
    integer = tflq.load(GOLDEN / "digits_mobilenet_int8.tflite")
    floats = tflq.load(GOLDEN / "digits_mobilenet_float.tflite")
    result = tflq.quantize(integer, [[x] for x in images(48)], Recipe(), requantize=True)
    before, after = constants(integer), constants(result.model)
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed
    assert {before[name][0] for name in changed} == {TensorType.INT32}
    assert all(before[name][1:3] == after[name][1:3] for name in changed)
    assert result.report.check.report is None or result.report.check.report.verdict == Verdict.SAME
    given = view(floats).inputs[0]
    others = [{given: x} for x in images(48, first=48)]
    assert compare_models(floats, result.model, others).sqnr > compare_models(floats, integer, others).sqnr


def test_a_float_model_is_refused() -> None:
    with pytest.raises(ModelError, match="not all of one integer type"):
        tflq.quantize(GOLDEN / "digits_mobilenet_float.tflite", [[x] for x in images(8)], requantize=True)


@pytest.mark.parametrize(("mode", "keep", "reason"), [("int8", ("0",), "computes with floats"), ("int8x4", (), "four")])
def test_what_is_integer_in_part_or_has_weights_of_four_bits_is_refused(
    mode: str, keep: tuple[str, ...], reason: str
) -> None:
    g = FloatGraph(1)
    options = {"fused_activation_function": 0, "keep_num_dims": False}
    x = g.op("FULLY_CONNECTED", [g.given(1, 8), g.weights(6, 8), g.bias(6)], options)[0]
    g.op("FULLY_CONNECTED", [x, g.weights(4, 6), g.bias(4)], options)
    floats = read(write(g.model()))
    made = min_max(floats, samples(floats, 0), Recipe(mode=mode, keep_float=keep)).integer.model  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=reason):
        tflq.quantize(made, [[np.ones((1, 8), np.float32)]], requantize=True)
