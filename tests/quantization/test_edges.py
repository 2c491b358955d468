"""Inputs and outputs of two models are paired by name before position, and channels are found at the other end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.float_graphs import FloatGraph
from support.toys import quantized
from tflq.errors import InputError
from tflq.face.report.verbs.compare_texts import column_texts, cut_texts, lead_text, unit_texts
from tflq.model.ir import Model, TensorSpec, TensorType, view
from tflq.quantization.judge.comparison import Fidelities, Span, SpanColumns, align, compare_models
from tflq.quantization.judge.detections import Fidelity
from tflq.typing import Array

RNG = np.random.default_rng(5)


def two_outputs() -> Model:
    g = FloatGraph(1)
    x = g.given(1, 4)
    return g.model([g.unary("EXP", x), g.unary("NEG", x)])


def edged(model: Model, **edges: Any) -> Model:
    return replace(model, subgraphs=(replace(model.subgraphs[0], **edges),))


def shifted(scale: Array, shift: Array) -> Model:
    """Numbers of a row, each with its own scale and constant part."""
    g = FloatGraph(1)
    x = g.op("MUL", [g.given(1, len(scale)), g.constant(scale)], {"fused_activation_function": 0})[0]
    return g.model(g.op("ADD", [x, g.constant(shift)], {"fused_activation_function": 0}))


def compared(reference: Model, other: Model, count: int = 20) -> Fidelities:
    graph = view(reference)
    shapes = {t: graph.tensors[t].shape for t in graph.inputs}
    return compare_models(
        reference,
        other,
        [{t: RNG.normal(size=shape).astype(np.float32) for t, shape in shapes.items()} for _ in range(count)],
    )


def test_outputs_of_the_same_names_in_another_order_are_equal() -> None:
    model = two_outputs()
    other = edged(model, outputs=model.subgraphs[0].outputs[::-1])
    found = compared(model, other)
    assert found.sqnr == float("inf")
    assert "paired by name" in found.remarks[0]
    assert align(model, other).model.subgraphs[0].outputs == model.subgraphs[0].outputs
    assert align(model, model).remarks == ()


def test_channels_at_the_other_end_are_found() -> None:
    models = []
    for shape in ((1, 3, 4, 5), (1, 4, 5, 3)):
        g = FloatGraph(1)
        models.append(g.model([g.unary("EXP", g.given(*shape))]))
    found = compared(*models)
    assert found.sqnr == float("inf")
    assert ["transposed by [0, 2, 3, 1]" in remark for remark in found.remarks] == [True, True]


def test_edges_that_do_not_correspond_are_refused() -> None:
    model = two_outputs()
    with pytest.raises(InputError, match="outputs differ"):
        align(model, edged(model, outputs=model.subgraphs[0].outputs[:1]))


def test_a_constant_part_counts_for_nothing_and_stuck_outputs_are_named() -> None:
    one = np.ones(1, np.float32)
    found = compared(shifted(0.001 * one, 1000 * one), shifted(0 * one, 1000 * one))
    assert found.sqnr < 1
    assert ["has one code for every sample (1000)" in text for text in unit_texts(found)] == [True]
    still = compared(shifted(0 * one, 1000 * one), shifted(0 * one, 1001 * one))
    assert ["is constant in float" in text for text in unit_texts(still)] == [True]


def test_a_lost_number_of_a_row_is_the_headline() -> None:
    scale, shift = np.array([100, 1, 100], np.float32), np.array([0, 50, 0], np.float32)
    found = compared(shifted(scale, shift), shifted(scale, shift + np.array([0, 2, 0], np.float32)))
    assert found.sqnr > 30
    assert lead_text(found).startswith("number 1 of 3 of output")
    assert [part.column for part in found.lost_columns] == [1]


def test_columns_of_an_input_that_one_scale_cannot_hold() -> None:
    spec = TensorSpec("x", TensorType.INT8, (1, 3), quantization=quantized(80.0, 0))
    rows = RNG.uniform(-1, 1, (20, 1, 3)) * [0.01, 10_000, 100]
    sums, columns = Fidelity("x", "INPUT", -1), SpanColumns()
    for row in rows:
        sums.add(row.astype(np.float32), np.clip(np.rint(row / 80), -128, 127).astype(np.int8), 80.0)
        columns.add(row)
    span = Span.of(spec, sums, columns)
    assert span is not None
    assert (span.narrow, span.columns, span.is_narrow) == ((0,), 3, False)
    base = compared(two_outputs(), two_outputs())
    assert list(column_texts(replace(base, entries=(span,)))) == []  # nothing is lost
    sums.noise = sums.judging
    found = replace(base, outputs=(sums,), figures=replace(base.figures, ratios={}), entries=(span,))
    assert "1 of its 3 columns (0) vary by less than a step of its codes, 80" in next(column_texts(found))


def test_a_tensor_whose_codes_end_early_saturates() -> None:
    spec = TensorSpec("h", TensorType.INT8, (1, 8), quantization=quantized(1 / 255, -128))
    sums = Fidelity("h", "CONV_2D", 0, -0.002, 1.002)
    for row in RNG.uniform(0, 2, (20, 8)):
        sums.add(row.astype(np.float32), np.clip(np.rint(row * 255) - 128, -128, 127).astype(np.int8), 1 / 255, -128)
    span = Span.of(spec, sums)
    assert span is not None
    assert span.is_narrow
    assert span.share == pytest.approx(0.5, abs=0.15)
    base = compared(two_outputs(), two_outputs())
    found = replace(base, outputs=(sums,), figures=replace(base.figures, ratios={}), ranges=(span,))
    assert "operator 0 CONV_2D (h) saturates: its codes end at 0 and 1" in next(cut_texts(found))
