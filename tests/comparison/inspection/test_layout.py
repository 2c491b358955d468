"""The parts of outputs and their meanings, and errors as they are read, computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tflq
from support.detectors import ANCHORS, CLASSES, FORMS, detector, samples
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.comparison.inspection.layout import OutputLayout, groups_of, layout_of, origins_of
from tflq.model.ir import view
from tflq.quantization.anchors import (
    READ,
    BoxForm,
    ColumnKind,
    Columns,
    class_scores,
    columns_of,
    corners,
    form_of,
    overlaps,
    reading_of,
    units,
)
from tflq.quantization.frontier import Runner

RNG = np.random.default_rng(3)
JOIN = ("ConcatenationOptions", {"axis": 1, "fused_activation_function": 0})


def rows_of(model: tflq.Model, layout: OutputLayout, count: int = 6) -> list[list[Any]]:
    runs = Runner(model, layout.tensors).each([{0: picture[None]} for picture in samples(count)])
    return [[run[t].astype(np.float64).reshape(-1) for t in layout.tensors] for run in runs]


@pytest.mark.parametrize("form", FORMS)
def test_boxes_and_scores_of_all_forms_are_found(form: str) -> None:
    model = detector(form)
    layout = layout_of(view(model))
    if form == "grid":
        names = reading_of(layout, rows_of(model, layout)).names
        assert set(names) == {"box offsets", "scores"}
        assert [group.places.shape for group in layout.groups] == [(4, ANCHORS), (CLASSES, ANCHORS)]
        return
    reading = reading_of(layout, rows_of(model, layout))
    shapes = {name: group.places.shape for name, group in zip(reading.names, layout.groups, strict=True)}
    assert shapes == {"boxes": (4, ANCHORS), "scores": (CLASSES, ANCHORS)}
    boxes, scores = reading.names.index("boxes"), reading.names.index("scores")
    assert reading.judges[boxes] == scores
    assert reading.judges[scores] is None
    assert reading.forms[boxes] is (BoxForm.CORNERS if form == "corners" else BoxForm.CENTRE)
    assert reading.logits == (frozenset({scores}) if form == "logits" else frozenset())
    assert layout.is_joint == (form != "apart")
    together = np.sort(np.concatenate([group.places.reshape(-1) for group in layout.groups if group.output == 0]))
    assert together.tolist() == list(range(len(together)))


def test_places_are_those_of_channels_and_anchors() -> None:
    first, last = (layout_of(view(detector(form))).groups for form in ("joint", "last"))
    assert first[0].places[1, 5] == 1 * ANCHORS + 5
    assert first[1].places[0, 5] == 4 * ANCHORS + 5
    assert last[0].places[1, 5] == 5 * (4 + CLASSES) + 1
    assert last[1].places[2, 7] == 7 * (4 + CLASSES) + 6


def test_a_single_output_is_plain() -> None:
    tensors = [T("float32", (1, 4)), T("float32", (1, 4))]
    layout = layout_of(view(tflq.load(build(Graph(tensors, (0,), (1,), [Op("LOGISTIC", (0,), (1,))])))))
    assert layout.is_plain
    assert layout.groups[0].is_scores


def test_what_decides_an_output_is_judged_in_place_of_positions() -> None:
    tensors = [T("float32", (1, 4)), T("float32", (1, 4)), T("int32", (1,), value=[1]), T("int64", (1,))]
    ops = [Op("ABS", (0,), (1,)), Op("ARG_MAX", (1, 2), (3,), ("ArgMaxOptions", {"output_type": 4}))]
    assert layout_of(view(tflq.load(build(Graph(tensors, (0,), (3,), ops))))).tensors == (1,)


@pytest.mark.parametrize("shape", [(1, 0, 4), (0,), (), (1, 1, 1)])
def test_degenerate_shapes_have_one_group(shape: tuple[int, ...]) -> None:
    tensors = [T("float32", shape), T("float32", shape)]
    layout = layout_of(view(tflq.load(build(Graph(tensors, (0,), (1,), [Op("ABS", (0,), (1,))])))))
    assert layout.is_plain
    assert layout.groups[0].places.size == int(np.prod(shape))


def test_a_long_chain_of_products_of_scores_ends() -> None:
    """Each product has two ways to the first scores: their number doubles with every operator."""
    tensors = [T("float32", (1, 4))] * 62
    chain = [Op("MUL", (k, k), (k + 1,), ("MulOptions", {"fused_activation_function": 0})) for k in range(1, 61)]
    model = tflq.load(build(Graph(tensors, (0,), (61,), [Op("LOGISTIC", (0,), (1,)), *chain])))
    assert layout_of(view(model)).groups[0].is_scores


def test_errors_count_where_scores_are_high_in_tenths_of_the_box() -> None:
    model = detector("joint")
    layout = layout_of(view(model))
    rows = rows_of(model, layout)
    reading = reading_of(layout, rows)
    boxes, scores = (rows[0][0][group.places] for group in layout.groups)
    best = scores.max(axis=0)
    read = np.flatnonzero(best >= READ)
    unread = np.flatnonzero(best < READ)
    assert len(read) > 0
    changed = boxes.copy()
    changed[:, unread] += 1000.0
    changed[0, read[0]] += 0.2 * boxes[2, read[0]]  # a fifth of the width: two units
    other = np.concatenate([changed, scores]).reshape(-1)
    noises = reading.noises(rows[0], [other])
    power = np.mean(
        [4 * np.where(s >= READ, s, 0).sum() for s in (r[0][layout.groups[1].places].max(axis=0) for r in rows)]
    )
    assert noises[0] == pytest.approx(best[read[0]] * 4 / power)
    assert noises[1] == 0


def test_the_best_anchor_is_read_if_none_has_a_high_score() -> None:
    model = detector("joint")
    layout = layout_of(view(model))
    row = rows_of(model, layout, 1)[0]
    low = row[0].copy()
    low[layout.groups[1].places] = 1e-3
    low[layout.groups[1].places[0, 9]] = 2e-3
    weights = reading_of(layout, [[low]]).weights(0, [low])
    assert weights is not None
    assert np.flatnonzero(weights).tolist() == [9]


def test_objectness_and_background_are_no_classes() -> None:
    scores = np.full((3, 10), 0.01)
    scores[0, 4], scores[1:] = 0.9, 0.6
    assert columns_of(scores) == Columns(ColumnKind.OBJECTNESS)
    assert class_scores(scores, columns_of(scores))[:, 4].tolist() == pytest.approx([0.54, 0.54])
    background = np.array([[0.01] * 9 + [0.9], [0.02] * 9 + [0.05], [0.97] * 9 + [0.05]])
    assert columns_of(background) == Columns(ColumnKind.BACKGROUND, 2)
    assert class_scores(background, columns_of(background)).tolist() == background[:2].tolist()
    assert columns_of(np.full((3, 10), 0.6)) == Columns(ColumnKind.CLASSES)
    assert columns_of(np.zeros((1, 10))) == Columns(ColumnKind.CLASSES)


def test_endless_errors_are_large_numbers() -> None:
    model = detector("joint")
    layout = layout_of(view(model))
    rows = rows_of(model, layout, 2)
    reading = reading_of(layout, rows)
    assert all(np.isfinite(reading.noises(rows[0], [np.full_like(rows[0][0], np.nan)])))
    assert reading.names == reading_of(layout, []).names or reading_of(layout, []).forms == {}


def test_forms_of_boxes() -> None:
    corner = RNG.uniform(0, 100, (2, 50))
    size = RNG.uniform(5, 40, (2, 50))
    ones = np.ones(50)
    centred = np.concatenate([corner + size / 2, size])
    assert form_of(np.concatenate([corner, corner + size]), ones) is BoxForm.CORNERS
    assert form_of(centred, ones) is BoxForm.CENTRE
    assert form_of(RNG.normal(0, 1, (4, 50)), ones) is BoxForm.DELTAS
    assert form_of(centred, np.zeros(50)) is BoxForm.DELTAS
    assert form_of(np.full((4, 50), np.nan), ones) is BoxForm.DELTAS
    assert np.allclose(corners(centred, BoxForm.CENTRE), np.concatenate([corner, corner + size]))
    assert np.allclose(units(centred, BoxForm.CENTRE)[0], size[0] / 10)
    both = np.array([[0.0, 0, 10, 10], [5, 0, 15, 10], [20, 20, 20, 30]]).T
    assert overlaps(both, both)[0].tolist() == pytest.approx([1, 1 / 3, 0])
    assert overlaps(both, both)[2].tolist() == [0, 0, 0]


def test_joins_of_joins_end() -> None:
    """Every tensor is followed once: 2**40 paths lead through forty joins of a tensor with itself."""
    tensors = [T("float32", (1, 2)) for _ in range(41)]
    ops = [Op("CONCATENATION", [k, k], [k + 1], JOIN) for k in range(40)]
    graph = view(tflq.load(build(Graph(tensors, [0], [40], ops))))
    assert len(groups_of(graph, 0, 40)) == 1


def test_an_output_beyond_memory_is_not_followed() -> None:
    tensors = [T("float32", (1, 1 << 29)), T("float32", (1, 1 << 29)), T("float32", (1, 4)), T("float32", (1, 4))]
    ops = [Op("CONCATENATION", [0, 0], [1], JOIN), Op("RESHAPE", [1], [2]), Op("CONCATENATION", [2, 2], [3], JOIN)]
    graph = view(tflq.load(build(Graph(tensors, [0], [3], ops))))
    assert origins_of(graph, 3)[1] == [3]
