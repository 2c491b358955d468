"""Learn one operator's requantizer: rounds of questions, until one function is left."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from tflq.devices.conformance.draft import CODES, Draft
from tflq.devices.learning.answer import Answer
from tflq.devices.learning.probes import LARGEST, MARGIN, Probe, draw, extreme, inner_codes, is_per_channel, wide
from tflq.devices.learning.space import Space, equal_at_every_edge
from tflq.engine.numerics.requantizer import ACCUMULATORS, LEFT, RESULTS, Requantizer, limit
from tflq.engine.numerics.requantizer_points import canonical, points, variants

#: A course of questions: it yields batches, is sent their answers, and returns its finding.
Rounds: TypeAlias = "Generator[list[Draft], list[Answer], Requantized]"

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
    asked: tuple[Answer, ...] = ()
    reason: str = ""
    proved: bool = True
    inner: tuple[Requantizer, ...] = ()

    @property
    def accumulators(self) -> int:
        """The number of accumulators that were asked about."""
        return sum(answer.elements for answer in self.asked)


@dataclass(slots=True)
class _Course:
    """The state of one course."""

    space: Space
    asked: list[Answer] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    rounds: int = 0

    def batch(self, probes: Sequence[Probe]) -> Generator[list[Draft], list[Answer], str]:
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
    course = _Course(Space(op, kind, everything))
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


def _widths(kind: str, told: Sequence[tuple[Probe, Answer]]) -> list[str]:
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


def _found(course: _Course, tried: int, reason: str) -> Requantized:
    space = course.space
    reason = reason if not course.asked else ""
    return Requantized(space.op, space.kind, space.points, tried, course.rounds, tuple(course.asked), reason)
