"""Places for the boxes of a directed graph: layers from top to bottom, few crossings, straight long arrows.

The method of Sugiyama, Tagawa and Toda (1981): boxes in layers by their longest path, bends where an arrow passes a
layer, an order within each layer by the mean place of the neighbours, then coordinates. Coordinates are least squares
under a smallest distance, which is isotonic regression (pool adjacent violators).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

#: Width of a box and of a bend, and the smallest gap between two of a layer. Pixels.
BOX, BEND, GAP = 200.0, 14.0, 24.0
#: Passes down and up that order the layers, and that place their boxes.
_ORDERINGS, _PLACINGS = 12, 24
#: Bends that a picture may have; the longest arrows beyond these go straight to their end.
_MOST_BENDS = 20_000
#: How much more an arrow between two bends pulls than one between boxes: it shall be straight.
_STRAIGHTNESS = 6.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Centres of boxes by number as (x, layer), and for every arrow the bends between its ends, from top to bottom."""

    boxes: tuple[tuple[float, int], ...]
    bends: tuple[tuple[tuple[float, int], ...], ...]
    width: float
    layers: int


def place(count: int, arrows: Sequence[tuple[int, int]]) -> Placement:
    """Place boxes 0 to `count` - 1. Each arrow is (from, to) with from before to in an order that all arrows follow.

    `arrows` refer to boxes whose numbers are in topological order: from < to.
    """
    layer = _layers(count, arrows)
    chains = _chains(layer, arrows, count)
    above, below = _neighbours(chains, len(layer))
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for item, row in enumerate(layer):
        rows[row].append(item)
    _order(rows, above, below)
    x = _coordinates(rows, above, below, count)
    left = min((x[i] - _width(i, count) / 2 for i in range(len(layer))), default=0.0)
    right = max((x[i] + _width(i, count) / 2 for i in range(len(layer))), default=0.0)
    points = [(x[i] - left, layer[i]) for i in range(len(layer))]
    bends = tuple(tuple(points[i] for i in chain[1:-1]) for chain in chains)
    return Placement(tuple(points[:count]), bends, right - left, len(rows))


def _layers(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """Return the longest path to each box; a box without a predecessor is put right above its first successor."""
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for start, end in arrows:
        into[end].append(start)
        out[start].append(end)
    layer = [0] * count
    for box in range(count):
        layer[box] = 1 + max((layer[source] for source in into[box]), default=-1)
    for box in range(count):
        if not into[box] and out[box]:
            layer[box] = min(layer[target] for target in out[box]) - 1
    return layer


def _chains(layer: list[int], arrows: Sequence[tuple[int, int]], count: int) -> list[list[int]]:
    """Return every arrow as its start, a bend in each layer between, and its end; append the bends to `layer`."""
    room = _MOST_BENDS
    chains: list[list[int]] = [[] for _ in arrows]
    for number in sorted(range(len(arrows)), key=lambda n: layer[arrows[n][1]] - layer[arrows[n][0]]):
        start, end = arrows[number]
        passed = range(layer[start] + 1, layer[end])
        bends = []
        if len(passed) <= room:
            room -= len(passed)
            bends = list(range(len(layer), len(layer) + len(passed)))
            layer.extend(passed)
        chains[number] = [start, *bends, end]
    return chains


def _neighbours(chains: Sequence[Sequence[int]], items: int) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(items)]
    below: list[list[int]] = [[] for _ in range(items)]
    for chain in chains:
        for upper, lower in itertools.pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    return above, below


def _order(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Sort each row by the mean position of its items' neighbours, downwards and upwards in turn."""
    for number in range(_ORDERINGS):
        ways = (rows[1:], above) if number % 2 == 0 else (rows[-2::-1], below)
        position = {item: float(i) for row in rows for i, item in enumerate(row)}
        for row in ways[0]:
            means = {i: fmean(position[n] for n in ways[1][i]) if ways[1][i] else position[i] for i in row}
            row.sort(key=means.__getitem__)
            position.update((item, float(i)) for i, item in enumerate(row))


def _coordinates(rows: list[list[int]], above: list[list[int]], below: list[list[int]], count: int) -> list[float]:
    x = [0.0] * len(above)
    for row in rows:
        _settle(row, dict.fromkeys(row, (0.0, 1.0)), x, count)
    for number in range(_PLACINGS):
        last = number >= _PLACINGS - 2
        for row in rows if number % 2 == 0 else reversed(rows):
            wishes = {}
            for item in row:
                sides = [*above[item], *below[item]] if last else above[item] if number % 2 == 0 else below[item]
                wishes[item] = _wish(item, sides or [item], x, count)
            _settle(row, wishes, x, count)
    return x


def _wish(item: int, neighbours: Sequence[int], x: Sequence[float], count: int) -> tuple[float, float]:
    """Return the best position of an item, the weighted mean of its neighbours, and its weight."""
    weights = [_STRAIGHTNESS if item >= count and n >= count else 1.0 for n in neighbours]
    total = sum(weights)
    return sum(w * x[n] for w, n in zip(weights, neighbours, strict=True)) / total, total


def _settle(row: Sequence[int], wishes: dict[int, tuple[float, float]], x: list[float], count: int) -> None:
    """Move a row's items as near to their wishes as the order and the gaps between them allow."""
    offsets, at = [], 0.0
    for position, item in enumerate(row):
        if position:
            at += (_width(row[position - 1], count) + _width(item, count)) / 2 + GAP
        offsets.append(at)
    blocks: list[list[float]] = []  # of items pushed together: mean, weight, number
    for item, offset in zip(row, offsets, strict=True):
        wish, weight = wishes[item]
        blocks.append([wish - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, heavy, number = blocks.pop()
            before = blocks[-1]
            before[0] = (before[0] * before[1] + mean * heavy) / (before[1] + heavy)
            before[1] += heavy
            before[2] += number
    settled = [mean for mean, _, number in blocks for _ in range(int(number))]
    for item, offset, mean in zip(row, offsets, settled, strict=True):
        x[item] = mean + offset


def _width(item: int, count: int) -> float:
    return BOX if item < count else BEND
