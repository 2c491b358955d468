"""Exact reachable sums of weight times value, each value from one set, as a set of bits.

Bit b of a set represents the sum `low` + b. Each weight shifts the set by every multiple of the weight that the values
allow. Where these are a range or rise in equal steps, doubling does that in as many steps as their number has bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Limit on the bits of one set, times the number of weights.
_MOST_BITS = 1 << 29
#: Number of weights whose values are searched exactly if there are more; the others are chosen in advance.
_SEARCHED = 12


@dataclass(frozen=True, eq=False)
class Values:
    """The values that each factor can have: rising, without repetition."""

    rising: Ints

    @classmethod
    def between(cls, low: int, high: int) -> Values:
        """Return all integers from `low` to `high`."""
        return cls(np.arange(low, high + 1, dtype=np.int64))

    @property
    def low(self) -> int:
        """The lowest value."""
        return int(self.rising[0])

    @property
    def high(self) -> int:
        """The highest value."""
        return int(self.rising[-1])

    @cached_property
    def progressions(self) -> tuple[tuple[int, int, int], ...]:
        """The values as (start, step, count), runs of equal steps from below."""
        found, rest = [], self.rising
        while len(rest):
            steps = np.diff(rest)
            broken = np.flatnonzero(steps != steps[0]) if len(steps) else steps
            count = len(rest) if not len(broken) else int(broken[0]) + 1
            found.append((int(rest[0]), int(steps[0]) if len(steps) else 1, count))
            rest = rest[count:]
        return tuple(found)

    def nearest(self, wanted: float) -> int:
        """Return the value nearest to a number, the lower of two."""
        return int(self.rising[np.argmin(np.abs(self.rising - wanted))])


def can_be_exact(weights: Ints, values: Values) -> bool:
    """Return whether the set of all reachable sums is small enough to be held as bits."""
    used = max(1, int(np.count_nonzero(weights)))
    bits = int(np.abs(weights).sum()) * (values.high - values.low)
    return bits * used * len(values.progressions) <= _MOST_BITS


def with_multiples(runs: Ints, divisor: int) -> Ints:
    """Return the rows (from, below) that contain a multiple of `divisor`; 0 has the one multiple 0."""
    start, stop = runs[:, 0], runs[:, 1]
    first = -(-start // divisor) * divisor if divisor else np.where(start <= 0, 0, stop)
    return runs[first < stop]


def values_for(weights: Ints, values: Values, runs: Ints | Sequence[tuple[int, int]]) -> tuple[Ints, int] | None:
    """Return values whose weighted sum lies in one of `runs` (from, below), and the sum; None if not found.

    Runs are the rows of an array (N, 2), or pairs. If `can_be_exact`, the search is exact, and None means that there
    are none. Otherwise all but the smallest weights get values that bring the sum near the first runs, and only the
    rest are searched.
    """
    pairs = np.asarray(runs, np.int64).reshape(-1, 2)
    if can_be_exact(weights, values):
        return _search(weights, values, pairs)
    order = np.argsort(np.abs(weights), kind="stable")
    used = order[weights[order] != 0]
    free, fixed = used[:_SEARCHED], used[_SEARCHED:][::-1]
    chosen = np.full(len(weights), values.nearest(0), np.int64)
    middle = int((weights[free] * (values.low + values.high)).sum()) // 2
    for start, stop in pairs[:64].tolist():
        rest = start - middle
        for tap in fixed:
            weight = int(weights[tap])
            chosen[tap] = values.nearest(rest / weight)
            rest -= weight * int(chosen[tap])
        there = int((weights[fixed] * chosen[fixed]).sum())
        solution = _search(weights[free], values, np.array([(start - there, stop - there)]))
        if solution is not None:
            chosen[free] = solution[0]
            return chosen, solution[1] + there
    return None


def _search(weights: Ints, values: Values, runs: Ints) -> tuple[Ints, int] | None:
    steps = tuple(weights.tolist())
    low = sum(min(w * values.low, w * values.high) for w in steps)
    sets = _sets(steps, values.rising.tobytes())
    hits = _mask(runs, low, sets[-1].bit_length()) & sets[-1]
    if not hits:
        return None
    at = (hits & -hits).bit_length() - 1
    reached = at + low
    chosen = np.full(len(steps), values.nearest(0), np.int64)
    for tap in range(len(steps) - 1, -1, -1):
        w = steps[tap]
        if not w:
            continue
        offsets = (values.rising - values.low if w > 0 else values.high - values.rising) * abs(w)
        number = _first_in(sets[tap], at - offsets)
        at -= int(offsets[number])
        chosen[tap] = values.rising[number]
    return chosen, reached


@lru_cache(maxsize=1)  # the arithmetics of several profiles are searched for one operator in turn
def _sets(weights: tuple[int, ...], rising: bytes) -> list[int]:
    """Return the set of sums of the first weights, for each number of them from 0 on."""
    sets, values = [1], Values(np.frombuffer(rising, np.int64))
    for w in weights:
        sets.append(_spread(sets[-1], w, values) if w else sets[-1])
    return sets


def _first_in(bits: int, places: Ints) -> int:
    """Return the index of the first place with a set bit; there is one."""
    lowest = max(0, int(places.min()))
    window = (bits >> lowest) & ((1 << int(places.max()) - lowest + 1) - 1)  # the rest of the set can be large
    data = np.frombuffer(window.to_bytes(window.bit_length() // 8 + 1, "little"), np.uint8)
    places = places - lowest
    inside = (places >= 0) & (places >> 3 < data.size)
    at = np.where(inside, places, 0)
    return int(np.argmax(inside & (data[at >> 3] >> (at & 7) & 1 == 1)))


def _spread(bits: int, weight: int, values: Values) -> int:
    """Return the union of `bits` shifted left by the weight's multiples, of which the lowest shifts by 0."""
    union = 0
    for start, step, count in values.progressions:
        first = start - values.low if weight > 0 else values.high - (start + step * (count - 1))
        union |= _repeat(bits, step * abs(weight), count - 1) << first * abs(weight)
    return union


def _repeat(bits: int, step: int, count: int) -> int:
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
