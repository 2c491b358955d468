"""Why an operator's bits differ: hypotheses are computed, and those that reproduce every bit of the dump are named.

Hypotheses: every profile's kernel and arithmetic, every field of the arithmetic taken from another profile, and the
library of device mistakes (tflq/verification/mistakes.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from numpy.typing import NDArray

from tflq.errors import TflqError
from tflq.interpreter import Plan
from tflq.ir import Model
from tflq.profiles import PROFILES, Profile, by_name
from tflq.verification.comparing import difference, unequal
from tflq.verification.dump import Dump
from tflq.verification.localize import Alone, operator_alone
from tflq.verification.mistakes import model_mistakes, stage_mistakes
from tflq.verification.placing import places

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A cause and how many of the elements it reproduces. `kind` is "profile", "arithmetic" or "mistake"."""

    kind: str
    name: str
    matching: int
    elements: int

    @property
    def exact(self) -> bool:
        """Whether it reproduces every bit."""
        return self.matching == self.elements


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One operator. `hypotheses` that change some element, best first; `matching` is what the profile reproduces.

    Where `hypotheses` has no exact one, the cause is undetermined.
    """

    index: int
    profile: str
    matching: int
    elements: int
    hypotheses: tuple[Hypothesis, ...]
    places: tuple[str, ...] = ()  # where the differing elements of its first differing tensor sit

    @property
    def exact(self) -> tuple[Hypothesis, ...]:
        """All hypotheses that reproduce every bit: where there are several, this input does not tell them apart."""
        return tuple(h for h in self.hypotheses if h.exact)

    @property
    def verdict(self) -> str:
        """same, explained, ambiguous or undetermined."""
        if self.matching == self.elements:
            return "same"
        return ("undetermined", "explained")[len(self.exact)] if len(self.exact) < 2 else "ambiguous"


def explain_operator(model: Model, dump: Dump, index: int, profile: Profile) -> Explanation:
    """Score every hypothesis on all elements of the operator's results that the dump holds."""
    alone = operator_alone(model, dump, index, profile)
    base = alone.run(alone.plan(profile))
    matching, elements = _score(base, alone.got)
    found = []
    if matching < elements:
        for kind, name, plan in _plans(alone, profile):
            try:
                values = alone.run(plan)
            except TflqError:
                continue
            score = _score(values, alone.got)[0]
            if any(not difference(base[t], values[t]).same for t in alone.got):
                found.append(Hypothesis(kind, name, score, elements))
    found.sort(key=lambda h: -h.matching)
    return Explanation(index, profile.name, matching, elements, tuple(found), _where(base, alone.got))


def _where(values: Mapping[int, Array], got: Mapping[int, Array]) -> tuple[str, ...]:
    for tensor, array in got.items():
        found = difference(values[tensor], array)
        if found.differing:
            return places(unequal(values[tensor], array))
    return ()


def _score(values: Mapping[int, Array], got: Mapping[int, Array]) -> tuple[int, int]:
    """Elements that agree bit by bit, and all."""
    matching = total = 0
    for tensor, expected in got.items():
        total += expected.size
        if tensor in values and not (found := difference(expected, values[tensor])).problem:
            matching += found.elements - found.differing
    return matching, total


def _plans(alone: Alone, profile: Profile) -> Iterator[tuple[str, str, Plan]]:
    """Kind, name and bound operator of every hypothesis that can be bound."""
    for kind, other in _profiles(profile):
        try:
            yield kind, other.name, alone.plan(other)
        except TflqError:
            continue
    for name, model in model_mistakes(alone.model):
        try:
            yield "mistake", name, alone.plan(profile, model)
        except TflqError:
            continue
    plan = alone.plan(profile)
    step = plan.steps[0]
    if step.prepared is not None:
        for name, data in stage_mistakes(step.prepared.data):
            changed = replace(step, prepared=replace(step.prepared, data=data))
            yield "mistake", name, replace(plan, steps=(changed,))


def _profiles(base: Profile) -> Iterator[tuple[str, Profile]]:
    """Every other profile; then the base with one field of its arithmetic as another profile has it."""
    others = [by_name(name) for name in PROFILES if name != base.name]
    for other in (*others, base.with_single_rounding()):
        yield "profile", other
    for field in fields(base.arithmetic):
        seen = [getattr(base.arithmetic, field.name)]
        for other in (*others, base.with_single_rounding()):
            value = getattr(other.arithmetic, field.name)
            if value not in seen:
                seen.append(value)
                name = f"{field.name} of {other.name}"
                yield (
                    "arithmetic",
                    base.derive(name=name, arithmetic=replace(base.arithmetic, **{field.name: value})),
                )


def fit(model: Model, dump: Dump) -> dict[str, tuple[tuple[int, int] | None, ...]]:
    """By profile, for every operator: (elements that agree, elements compared), or None where nothing was compared."""
    from tflq.verification.localize import localize

    matrix = {}
    for name in PROFILES:
        row: list[tuple[int, int] | None] = []
        for located in localize(model, dump, by_name(name)):
            parts = located.differences.values()
            total = sum(d.elements for d in parts)
            row.append((total - sum(d.elements if d.problem else d.differing for d in parts), total) if total else None)
        matrix[name] = tuple(row)
    return matrix
