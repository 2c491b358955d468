"""Exact reachable sums of weight times value, each value from one range, as a set of bits.

Bit b of a set represents the sum `low` + b. Each weight shifts the set by every multiple of the weight that the range
allows; doubling does that in as many steps as the range has bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.numerics.contract import Range

Ints = NDArray[np.int64]

#: Limit on the bits of one set, times the number of weights.
_MOST_BITS = 1 << 29
#: Number of weights whose values are searched exactly if there are more; the others are chosen in advance.
_SEARCHED = 12


def can_be_exact(weights: Ints, span: Range) -> bool:
    """Return whether the set of all reachable sums is small enough to be held as bits."""
    used = np.count_nonzero(weights)
    return int(np.abs(weights).sum()) * (span[1] - span[0]) * max(1, int(used)) <= _MOST_BITS


def with_multiples(runs: Ints, divisor: int) -> Ints:
    """Return the rows (from, below) that contain a multiple of `divisor`; 0 has the one multiple 0."""
    start, stop = runs[:, 0], runs[:, 1]
    first = -(-start // divisor) * divisor if divisor else np.where(start <= 0, 0, stop)
    return runs[first < stop]


def values_for(weights: Ints, span: Range, runs: Ints | Sequence[tuple[int, int]]) -> tuple[Ints, int] | None:
    """Return values from `span` whose weighted sum lies in one of `runs` (from, below), and the sum; None if not found.

    Runs are the rows of an array (N, 2), or pairs. If `can_be_exact`, the search is exact, and None means that there
    are none. Otherwise all but the smallest weights get values that bring the sum near the first runs, and only the
    rest are searched.
    """
    pairs = np.asarray(runs, np.int64).reshape(-1, 2)
    if can_be_exact(weights, span):
        return _searched(weights, span, pairs)
    order = np.argsort(np.abs(weights), kind="stable")
    used = order[weights[order] != 0]
    free, fixed = used[:_SEARCHED], used[_SEARCHED:][::-1]
    values = np.clip(np.zeros(len(weights), np.int64), *span)
    middle = int((weights[free] * (span[0] + span[1])).sum()) // 2
    for start, stop in pairs[:64].tolist():
        rest = start - middle
        for tap in fixed:
            weight = int(weights[tap])
            values[tap] = min(max(round(rest / weight), span[0]), span[1])
            rest -= weight * int(values[tap])
        there = int((weights[fixed] * values[fixed]).sum())
        solution = _searched(weights[free], span, np.array([(start - there, stop - there)]))
        if solution is not None:
            values[free] = solution[0]
            return values, solution[1] + there
    return None


def _searched(weights: Ints, span: Range, runs: Ints) -> tuple[Ints, int] | None:
    steps = [int(w) for w in weights]
    lowest = [min(w * span[0], w * span[1]) for w in steps]
    low, width = sum(lowest), span[1] - span[0]
    sets = [1]
    for w in steps:
        sets.append(_spread(sets[-1], abs(w), width) if w else sets[-1])
    hits = _mask(runs, low, sets[-1].bit_length()) & sets[-1]
    if not hits:
        return None
    at = (hits & -hits).bit_length() - 1
    reached = at + low
    values = np.clip(np.zeros(len(steps), np.int64), *span)
    for tap in range(len(steps) - 1, -1, -1):
        w = steps[tap]
        if not w:
            continue
        count = _first_in(sets[tap], at - np.arange(width + 1, dtype=np.int64) * abs(w))
        at -= count * abs(w)
        values[tap] = span[0] + count if w > 0 else span[1] - count
    return values, reached


def _first_in(bits: int, places: Ints) -> int:
    """Return the index of the first place with a set bit; there is one."""
    data = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), np.uint8)
    inside = (places >= 0) & (places >> 3 < data.size)
    at = np.where(inside, places, 0)
    return int(np.argmax(inside & (data[at >> 3] >> (at & 7) & 1 == 1)))


def _spread(bits: int, step: int, count: int) -> int:
    """Return the union of `bits` shifted left by 0, 1, ... `count` times `step`."""
    reached = 0
    while reached < count:
        more = min(reached + 1, count - reached)
        bits |= bits << step * more
        reached += more
    return bits


def _mask(runs: Ints, low: int, length: int) -> int:
    """Return the bits of all runs."""
    marks: NDArray[np.uint8] = np.zeros(length, np.uint8)
    for start, stop in np.clip(runs - low, 0, length).tolist():
        marks[start:stop] = 1
    return int.from_bytes(np.packbits(marks, bitorder="little").tobytes(), "little")
