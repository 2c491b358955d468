"""The version space of a requantizer, learned by rounds of questions.

The version space of a requantizer: the points of the grammar that reproduce every answer so far.

Points with equal codes on all questions are one group. The next question is chosen, or solved for, so that it splits
the groups; where no question does, all groups are compared at every edge between codes.

Learn one operator's requantizer: rounds of questions, until one function is left.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.devices.learning.asking import DeviceAnswer
from tflq.devices.learning.questions import (
    CHANNELS,
    LARGEST,
    MARGIN,
    Probe,
    draw,
    extreme,
    inner_codes,
    inner_totals,
    is_per_channel,
    lowest_exponent,
    wide,
    with_totals,
)
from tflq.devices.suites.draft import CODES, Draft
from tflq.engine.numerics.requantizer import (
    ACCUMULATORS,
    LEFT,
    RESULTS,
    Requantizer,
    canonical,
    limit,
    points,
    variants,
)
from tflq.typing import Array

Ints = NDArray[np.int64]

#: Random models that are tried as next questions, and chosen ones of a batch.
_POOL, _BATCH = 24, 4
#: Multipliers that are searched for one at which two points differ.
_SEARCHED = 4000
#: Edges between codes that are looked at for each of them.
_EDGES = 24
#: Bits of the numbers next to which multipliers are searched: where mantissas are rounded or cut.
_BITS = np.array([1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 23, 24])
#: Groups whose pairs are solved for in one round.
_PAIRS = 12


@dataclass(frozen=True, slots=True)
class Space:
    """Points of one operator and type that reproduce every answer."""

    op: str
    kind: str
    points: tuple[Requantizer, ...]
    reach: int = LARGEST  # the largest accumulator that is asked about

    def codes(self, point: Requantizer, probe: Probe) -> Ints:
        """Return the codes of a point for a probe's accumulators."""
        scales = probe.scales
        return point.codes(probe.total, point.factors(scales.real, scales), probe.zero_out, *CODES[self.kind])

    def keep(self, probe: Probe, answer: Array) -> Space:
        """Return the space without the points that give another answer."""
        codes = answer.reshape(-1).astype(np.int64)
        kept = tuple(point for point in self.points if np.array_equal(self.codes(point, probe), codes))
        return replace(self, points=kept)

    def groups(self, probes: Iterable[Probe]) -> list[tuple[Requantizer, ...]]:
        """Return the points by their codes on some probes."""
        keys: dict[bytes, list[Requantizer]] = {}
        listed = list(probes)
        for point in self.points:
            key = b"".join(self.codes(point, probe).astype(np.int16).tobytes() for probe in listed)
            keys.setdefault(key, []).append(point)
        return [tuple(points) for points in keys.values()]

    def next_probes(self, rng: np.random.Generator, count: int = _BATCH) -> list[Probe]:
        """Return the models that split the points best, the best first; empty if no tried model splits them."""
        if len(self.points) < 2:
            return []
        pool = draw(rng, self.op, self.kind, _POOL, self.reach)
        groups = self.groups(pool)
        chosen: list[Probe] = []
        if len(groups) > 1:
            some = Space(self.op, self.kind, tuple(group[0] for group in groups))
            parts: list[tuple[Requantizer, ...]] = [some.points]
            while len(chosen) < count and any(len(part) > 1 for part in parts):
                splits = [_split(some, parts, probe) for probe in pool]
                best = max(range(len(pool)), key=lambda i: len(splits[i]))
                if len(splits[best]) == len(parts):
                    break
                chosen.append(pool[best])
                parts = splits[best]
        mixed = [group for group in groups if len(group) > 1]
        for group in mixed[:_PAIRS] if len(chosen) < count else ():
            solved = self.solved(rng, group[0], group[1:])
            if solved is not None:
                chosen.append(solved)
            if len(chosen) >= count:
                break
        return chosen

    def solved(self, rng: np.random.Generator, point: Requantizer, others: Sequence[Requantizer]) -> Probe | None:
        """Return a model on which `point` differs from as many of the others as were found; None if from none.

        Multipliers are searched in which the factors of two points differ, most of all float32 neighbours of numbers of
        few bits; then accumulators at the edges between codes and on ties.
        """
        found: list[Probe] = []
        for other in others[:_PAIRS]:
            probe = self._parting(rng, point, other)
            if probe is not None:
                found.append(probe)
                if not is_per_channel(self.op, self.kind) or len(found) >= 2:
                    break
        return found[0] if found else None

    def _parting(self, rng: np.random.Generator, one: Requantizer, other: Requantizer) -> Probe | None:
        low, high = CODES[self.kind]
        for base in draw(rng, "CONV_2D", "int8", 8, self.reach):
            b = np.concatenate([base.b, _neighbours(rng, base, self.reach)]).astype(np.float32)[:_SEARCHED, None]
            wide = replace(base, b=b)
            scales = wide.scales
            factors = [point.factors(scales.real, scales) for point in (one, other)]
            codes = rng.integers(*inner_codes(base.zero_out, self.kind), (1, _EDGES))
            edges = np.round((codes + 0.5) / scales.real)
            totals = np.concatenate([edges - 1, edges, edges + 1], axis=1)
            totals = inner_totals(totals, scales.real, base.zero_out, self.kind, self.reach).astype(np.int64)
            results = [
                point.codes(totals, f, base.zero_out, low, high) for point, f in zip((one, other), factors, strict=True)
            ]
            rows, columns = np.nonzero(results[0] != results[1])
            if not rows.size:
                continue
            if is_per_channel(self.op, self.kind):
                order = rng.permutation(rows.size)
                picked = order[np.arange(CHANNELS) % rows.size]
                return with_totals(replace(base, b=b[rows[picked], 0]), totals[rows[picked], columns[picked]])
            row = int(np.bincount(rows).argmax())
            mine = totals[row, columns[rows == row]]
            others = totals[row, rng.integers(0, totals.shape[1], CHANNELS)]
            return with_totals(replace(base, b=b[row]), np.concatenate([mine, others])[:CHANNELS])
        return None

    def variants_of(self, points: Iterable[Requantizer]) -> Space:
        """Return a space of other points for the same operator and type."""
        return replace(self, points=tuple(points))


def _split(space: Space, parts: Sequence[tuple[Requantizer, ...]], probe: Probe) -> list[tuple[Requantizer, ...]]:
    """Return the parts, each divided by the codes on a probe."""
    found = []
    for part in parts:
        keys: dict[bytes, list[Requantizer]] = {}
        for point in part:
            keys.setdefault(space.codes(point, probe).astype(np.int16).tobytes(), []).append(point)
        found += [tuple(points) for points in keys.values()]
    return found


def _neighbours(rng: np.random.Generator, base: Probe, reach: int) -> NDArray[np.float32]:
    """Return weight scales whose multipliers lie next to numbers of few bits, or anywhere."""
    bits = rng.choice(_BITS, _SEARCHED // 2)
    odd = 2 * rng.integers(1 << (bits - 1), 1 << bits) + 1
    lowest = lowest_exponent(reach)
    few = odd * 2.0 ** (rng.integers(int(lowest) + 1, 1, odd.size) - bits)
    steps = rng.integers(-2, 3, few.size)
    near = (few * float(base.y) / float(base.a)).astype(np.float32)
    near = (near.view(np.int32) + steps.astype(np.int32)).view(np.float32)
    anywhere = (2.0 ** rng.uniform(lowest, 1, _SEARCHED // 2) * float(base.y) / float(base.a)).astype(np.float32)
    return np.concatenate([near, anywhere])


def equal_at_every_edge(space: Space, one: Requantizer, other: Requantizer, probe: Probe) -> bool:
    """Return whether two points give the same code for every accumulator of 32 bits, at each multiplier of a probe.

    Both are monotone in the accumulator while nothing overflows. So they are equal if, for every code, they have the
    same smallest accumulator that reaches it; it is found by bisection.
    """
    first, second = (replace(p, left="exact", accumulator="64 bits", result="clamped") for p in (one, other))
    return bool(np.array_equal(_edges(space, first, probe), _edges(space, second, probe)))


def _edges(space: Space, point: Requantizer, probe: Probe) -> Ints:
    """Return the smallest accumulator that reaches each code, by channel."""
    low, high = CODES[space.kind]
    scales = replace(probe, b=probe.b[:, None]).scales
    factors = point.factors(scales.real, scales)
    wanted = np.arange(low + 1, high + 1)[None, :]
    shape = (len(probe.b), wanted.shape[1])
    below, above = np.full(shape, -(2**31), np.int64), np.full(shape, 2**31 - 1, np.int64)
    for _ in range(33):
        middle = (below + above) >> 1
        reached = point.codes(middle, factors, probe.zero_out, low, high) >= wanted
        above, below = np.where(reached, middle, above), np.where(reached, below, middle + 1)
        below = np.minimum(below, above)
    return above


#: A course of questions: it yields batches, is sent their answers, and returns its finding.
Rounds: TypeAlias = "Generator[list[Draft], list[DeviceAnswer], Requantized]"

#: Models of the first batch for operators with a multiplier per channel, and with one for all; and of extremes.
_FIRST, _FIRST_OF_ONE, _EXTREMES = 4, 16, 4
#: The largest accumulator of a width in bits.
_REACH = {bits: 2 ** (int(bits) - 1) - 1 for bits in ("16", "18", "20", "24")}
#: Points whose variants are tried, and those left that are compared at every edge.
_LEFT, _PROVED = 48, 8
#: Rounds after which those left are named as they are.
_ROUNDS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Requantized:
    """The points that reproduce every answer, simplest first; none if the grammar has no such point.

    `tried` counts points. `asked` are the models with their answers. `reason` is why nothing could be asked. `proved`
    is true if all points left are equal at every edge between codes, for every accumulator, at all multipliers asked.
    `inner` are points that reproduce all but extremes, if no point reproduces these.
    """

    op: str
    kind: str
    points: tuple[Requantizer, ...] = ()
    tried: int = 0
    rounds: int = 0
    asked: tuple[DeviceAnswer, ...] = ()
    reason: str = ""
    proved: bool = True
    inner: tuple[Requantizer, ...] = ()

    @property
    def accumulators(self) -> int:
        """The number of accumulators that were asked about."""
        return sum(answer.elements for answer in self.asked)


@dataclass(slots=True)
class _RequantizerCourse:
    """The state of one course."""

    space: Space
    asked: list[DeviceAnswer] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    rounds: int = 0

    def batch(self, probes: Sequence[Probe]) -> Generator[list[Draft], list[DeviceAnswer], str]:
        """Ask some probes and keep the points that reproduce them; return why none was answered, or nothing."""
        answers = yield [probe.draft(self.space.op, self.space.kind) for probe in probes]
        self.rounds += 1
        for probe, answer in zip(probes, answers, strict=True):
            if answer.is_answered:
                self.asked.append(answer)
                self.probes.append(probe)
                self.space = self.space.keep(probe, answer.outputs[0][0])
        return "" if any(answer.is_answered for answer in answers) else next((a.reason for a in answers), "not asked")


def learned_requantizer(op: str, kind: str, seed: int) -> Rounds:
    """Ask an operator until its requantizer is known, and return it."""
    rng = np.random.default_rng([seed, 11])
    everything = points()
    course = _RequantizerCourse(Space(op, kind, everything))
    count = _FIRST if is_per_channel(op, kind) else _FIRST_OF_ONE
    looked = wide(rng, op, kind, count + 1 if is_per_channel(op, kind) else 2 * _FIRST)
    answers = yield [probe.draft(op, kind) for probe in looked]
    course.rounds += 1
    told = [(p, a) for p, a in zip(looked, answers, strict=True) if a.is_answered]
    course.asked += [answer for _, answer in told]
    widths = _widths(kind, told)
    course.space = course.space.variants_of(replace(p, accumulator=w) for w in widths for p in everything)
    course.space = replace(course.space, reach=min(_REACH.get(w.split(" ")[0], LARGEST) for w in widths))
    reason = yield from course.batch(draw(rng, op, kind, count, course.space.reach))
    while not reason and course.rounds < _ROUNDS:
        chosen = course.space.next_probes(rng)
        if not chosen:
            break
        reason = yield from course.batch(chosen)
    if not course.asked or not course.space.points:
        return _found(course, len(everything), reason)
    inner = course.space.points[:_LEFT]
    beyond = [variant for point in course.space.points[:_LEFT] for variant in variants(point)]
    course.space = course.space.variants_of(beyond)
    reason = yield from course.batch(extreme(rng, op, kind, _EXTREMES * (1 if is_per_channel(op, kind) else 3)))
    found = _found(course, len(everything) * len(widths) + len(beyond), reason)
    alike = {canonical(replace(point, left=LEFT[0], result=RESULTS[0])): point for point in found.points}
    left = list(alike.values())[:_PROVED]
    proved = all(
        equal_at_every_edge(course.space, left[0], other, probe) for other in left[1:] for probe in course.probes[:2]
    )
    return replace(found, proved=proved, inner=() if found.points else inner)


def _widths(kind: str, told: Sequence[tuple[Probe, DeviceAnswer]]) -> list[str]:
    """Return the widths of accumulators under which all codes lie near the real ones; if there is none, the usual one.

    No rounding and no mantissa of the grammar moves a code by more than `MARGIN`.
    """
    low, high = CODES[kind]
    found = []
    for accumulator in ACCUMULATORS:
        is_near = True
        for probe, answer in told:
            scaled = limit(probe.total, accumulator) * probe.scales.real
            ideal = np.clip(scaled + probe.zero_out, low, high)
            least, most = inner_codes(probe.zero_out, kind)
            inside = (scaled >= least) & (scaled <= most)
            distance = np.abs(answer.outputs[0][0].reshape(-1).astype(np.float64) - ideal)
            is_near &= bool(np.all((distance <= MARGIN) | ~inside))
        if is_near:
            found.append(accumulator)
    return list(dict.fromkeys([ACCUMULATORS[0], *found]))  # a multiplier beside the real one leaves none that is near


def _found(course: _RequantizerCourse, tried: int, reason: str) -> Requantized:
    space = course.space
    reason = reason if not course.asked else ""
    return Requantized(space.op, space.kind, space.points, tried, course.rounds, tuple(course.asked), reason)
