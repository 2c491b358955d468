"""Boxes in layers: none lies on another, arrows lead down, and chains are straight."""

from __future__ import annotations

import itertools
import random

import pytest

from tflq.face.report.graph.drawing import BOX, GAP, Placement, place


def rows_of(placed: Placement) -> dict[int, list[float]]:
    rows: dict[int, list[float]] = {}
    for x, layer in placed.boxes:
        rows.setdefault(layer, []).append(x)
    return rows


def some_graph(seed: int, count: int) -> list[tuple[int, int]]:
    chance = random.Random(seed)
    chain = [(i, i + 1) for i in range(count - 1) if chance.random() < 0.9]
    skips = [(a, min(count - 1, a + chance.randint(2, 30))) for a in range(0, count - 2, 5)]
    return [*chain, *((a, b) for a, b in skips if a < b)]


@pytest.mark.parametrize("seed", range(4))
def test_no_box_lies_on_another_and_arrows_lead_down(seed: int) -> None:
    arrows = some_graph(seed, 60)
    placed = place(60, arrows)
    for row in rows_of(placed).values():
        row.sort()
        assert all(right - left >= BOX + GAP - 1e-6 for left, right in itertools.pairwise(row))
    for (start, end), bends in zip(arrows, placed.bends, strict=True):
        layers = [placed.boxes[start][1], *(layer for _, layer in bends), placed.boxes[end][1]]
        assert layers == list(range(layers[0], layers[-1] + 1))
    assert min(x for x, _ in placed.boxes) >= BOX / 2 - 1e-6
    assert max(x for x, _ in placed.boxes) <= placed.width - BOX / 2 + 1e-6


def test_a_chain_is_straight() -> None:
    placed = place(5, [(i, i + 1) for i in range(4)])
    assert len({x for x, _ in placed.boxes}) == 1
    assert (placed.layers, placed.width) == (5, BOX)


def test_a_diamond_is_symmetric() -> None:
    (top, _), (left, _), (right, _), (bottom, _) = place(4, [(0, 1), (0, 2), (1, 3), (2, 3)]).boxes
    assert top == pytest.approx((left + right) / 2)
    assert bottom == pytest.approx((left + right) / 2)


def test_a_long_arrow_is_bent_but_straight_between() -> None:
    placed = place(6, [*((i, i + 1) for i in range(5)), (0, 5)])
    bends = [x for x, _ in placed.bends[-1]]
    assert len(bends) == 4
    assert max(bends) - min(bends) < 1


def test_a_source_stands_above_its_first_reader() -> None:
    placed = place(5, [(0, 1), (1, 2), (2, 4), (3, 4)])
    assert placed.boxes[3][1] == placed.boxes[4][1] - 1


def test_nothing_and_loose_boxes_have_places() -> None:
    assert place(0, []).layers == 0
    assert {layer for _, layer in place(3, []).boxes} == {0}


@pytest.mark.slow
def test_bends_are_limited() -> None:
    count = 400
    dense = [(a, b) for a in range(0, count, 2) for b in range(a + 2, count, 2)]
    arrows = [*((i, i + 1) for i in range(count - 1)), *dense]
    placed = place(count, arrows)
    assert sum(map(len, placed.bends)) <= 20_000
    assert len(placed.boxes) == count
