"""Causes that fit one operator, held against the others of its type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.findings import Findings, investigate
from tflq.engine.profiles import PROFILES
from tflq.face.report.render.text import lines_of
from tflq.face.report.verbs.explain import explain_report
from tflq.model.ir import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    Subgraph,
    TensorSpec,
    TensorType,
    view,
)

Array = NDArray[Any]
#: Multiples of 8 but for -4, which an eighth brings half-way between two codes.
ONE_TIE = np.array([[8, -16, 24, -4, 0, 16, -24, 64]], np.int8)
TIES = np.array([[-12, 12, -20, 20, -28, 28, -36, 36]], np.int8)


def model(layers: int) -> Model:
    """Operators that bring codes of scale 1 to codes of scale 8, each with an input and an output of its own."""
    tensors: list[TensorSpec] = []
    for layer in range(layers):
        for name, scale in (("x", 1.0), ("y", 8.0)):
            quantization = Quantization(np.array([scale], np.float32), np.array([0], np.int64))
            spec = TensorSpec(f"{name}{layer}", TensorType.INT8, ONE_TIE.shape, quantization=quantization)
            tensors.append(spec)
    inputs, outputs = tuple(range(0, 2 * layers, 2)), tuple(range(1, 2 * layers, 2))
    operators = tuple(
        Operator(0, (x,), (y,), options=Record("QuantizeOptions", {})) for x, y in zip(inputs, outputs, strict=True)
    )
    graph = Subgraph(tuple(tensors), inputs, outputs, operators)
    return Model(3, (OperatorCode(114, "QUANTIZE"),), (graph,), (Buffer(),))


def half_up(code: int) -> int:
    return math.floor(code / 8 + 0.5)


def half_away(code: int) -> int:
    return int(math.copysign(math.floor(abs(code) / 8 + 0.5), code))


def towards_zero(code: int) -> int:
    return math.trunc(code / 8)


def explained(*layers: tuple[Array, Any], op: int | None = None) -> Findings:
    """What is found of a device whose layers get those codes and round so."""
    device = model(len(layers))
    values: dict[int, Array] = {}
    for operator, (codes, rounding) in zip(view(device).ops, layers, strict=True):
        made = [rounding(int(code)) for code in codes.reshape(-1)]
        values[operator.inputs[0]] = codes
        values[operator.outputs[0]] = np.array(made, np.int8).reshape(codes.shape)
    return investigate(device, [Dump("", values)], PROFILES["litert-ref"], op=op)


def names(found: Findings) -> list[str]:
    assert found.explanation is not None
    return [name for cause in found.explanation.fitting for name in (cause.name, *cause.also)]


def test_one_half_way_case_alone_leaves_several_causes() -> None:
    found = explained((ONE_TIE, half_up)).explanation
    assert found is not None
    assert len(found.fitting) > 1
    assert found.alike == ()


def test_where_a_profile_and_mistakes_fit_the_profile_comes_first_and_is_never_certain() -> None:
    found = explained((ONE_TIE, half_up))
    explanation = found.explanation
    assert explanation is not None
    assert [cause.is_a_profile for cause in explanation.exact] == [True]
    assert explanation.exact[0].name == "litert-ref+single-rounding"
    assert explanation.ranking.less_likely
    assert not any(cause.is_a_profile for cause in explanation.ranking.less_likely)
    assert "mistakes reproduce every bit, too" in explanation.doubts
    assert explanation.certainty == "none"
    said = [line.text for line in lines_of(explain_report(found))]
    assert any(text.startswith("  less likely: mistake: ") for text in said)


@pytest.mark.parametrize(
    ("rounding", "expected", "other"),
    [
        (half_up, "rounds half up, in fixed point", "rounds towards zero, in fixed point"),
        (towards_zero, "rounds towards zero, in fixed point", "rounds half up, in fixed point"),
    ],
)
def test_another_layer_tells_which_cause_it_is(rounding: Any, expected: str, other: str) -> None:
    found = explained((ONE_TIE, rounding), (TIES, rounding), op=0)
    assert found.explanation is not None
    assert found.explanation.alike == (1,)
    assert expected in names(found)
    assert other not in names(found)
    assert any(cause.not_at == (1,) for cause in found.explanation.ranking.only_here)
    said = [line.text for line in lines_of(explain_report(found))]
    assert any("not operator 1" in text for text in said)


def test_a_layer_that_does_not_differ_counts_where_another_does() -> None:
    found = explained((ONE_TIE, half_up), (-ONE_TIE, half_up), (ONE_TIE, half_up))
    assert found.explanation is not None
    assert set(found.explanation.alike) == {1, 2}
    assert "rounds half up, in fixed point" in names(found)
    assert "rounds towards zero, in fixed point" not in names(found)


def test_a_mistake_in_one_layer_only_is_not_excluded_by_layers_that_are_right() -> None:
    found = explained((ONE_TIE, towards_zero), (TIES, half_away))
    assert found.explanation is not None
    assert found.explanation.alike == ()
    assert "rounds towards zero, in fixed point" in names(found)
