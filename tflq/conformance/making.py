"""From drafts to a suite: outputs that the profile gives, inputs on which other profiles part, levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.api.files import load
from tflq.conformance.draft import Draft, Sample
from tflq.conformance.grids import drafts
from tflq.conformance.grids.refused import REFUSED
from tflq.conformance.suite import Case, Suite, digest
from tflq.errors import TflqError
from tflq.interpreter import Plan, make_plan, run
from tflq.ir import Model
from tflq.profiles import Profile, by_name
from tflq.proof.proof import contrast

Array = NDArray[Any]

#: Profiles whose arithmetic a device may have instead: where one gives other bits, a case has to show it.
CONTRASTS = ("litert-opt", "litert-xnnpack", "tflite-2.14-ref", "tflm", "litert-ref+single-rounding", "litert-ref")
#: Operators for which inputs are made that reach what two profiles compute differently.
_REACHED = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"))


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A suite and the data that its digests stand for; `left_out` counts drafts that the profile refuses."""

    suite: Suite
    data: dict[str, Array]
    left_out: int


def make(profile: str = "litert-ref", level: str = "standard", seed: int = 0) -> Made:
    """Make a suite of what `profile` computes.

    Raises:
        UnknownNameError: No profile has that name.
    """
    chosen = by_name(profile)
    others = [by_name(name) for name in CONTRASTS if name != profile]
    data: dict[str, Array] = {}
    cases: list[Case] = []
    seen: set[tuple[str, ...]] = set()
    left_out = 0
    for number, draft in enumerate(drafts(seed, level)):
        key = (draft.op, draft.types, draft.aim.partition(";")[0])
        its_level = "standard" if key in seen else "smoke"
        seen.add(key)
        if level == "smoke" and its_level != "smoke":
            continue
        case = _case(number, draft, chosen, others, its_level, data)
        left_out += case is None
        cases += [] if case is None else [case]
    return Made(Suite(chosen.name, level, seed, version("tflq"), tuple(cases)), data, left_out)


def _case(
    number: int, draft: Draft, profile: Profile, others: Sequence[Profile], level: str, data: dict[str, Array]
) -> Case | None:
    file = draft.model()
    model = load(file)
    must_refuse = draft.aim.startswith(REFUSED)
    samples, tells = draft.samples, set[str]()
    expected: tuple[Sample, ...] = ()
    try:
        plan = make_plan(model, profile)
        samples, reached = _samples(draft, model, profile, others)
        tells |= reached
        expected = tuple(_run(plan, sample) for sample in samples)
    except TflqError:
        if not must_refuse:
            return None
    if must_refuse == bool(expected):
        return None
    tells |= {p.name for p in others if expected and _gives_other(model, p, samples, expected)}
    stored = [np.frombuffer(file, np.uint8), *(a for rows in (samples, expected) for row in rows for a in row)]
    data |= {digest(a): a for a in stored}
    name = f"{number:05d}-{draft.op.lower()}"
    digests = [tuple(tuple(map(digest, row)) for row in rows) for rows in (samples, expected)]
    return Case(name, draft.op, draft.types, level, draft.aim, tuple(sorted(tells)), digest(stored[0]), *digests)


def _samples(
    draft: Draft, model: Model, profile: Profile, others: Sequence[Profile]
) -> tuple[tuple[Sample, ...], set[str]]:
    """The draft's own, and one for each other arithmetic on which it parts from the profile's."""
    if draft.op not in _REACHED:
        return draft.samples, set()
    found: dict[bytes, Sample] = {}
    names = set()
    for verdict in contrast(model, 0, profile, others):
        if verdict.witness is not None:
            inputs = verdict.witness.inputs
            sample = tuple(inputs[t] for t in model.subgraphs[0].inputs)
            found[b"".join(a.tobytes() for a in sample)] = sample
            names.add(verdict.second)
    return (*draft.samples, *found.values()), names


def _run(plan: Plan, sample: Sample) -> Sample:
    values = run(plan, dict(zip(plan.inputs, sample, strict=True))).values
    return tuple(values[tensor] for tensor in plan.outputs)


def _gives_other(model: Model, profile: Profile, samples: Sequence[Sample], expected: Sequence[Sample]) -> bool:
    try:
        plan = make_plan(model, profile)
        results = [_run(plan, sample) for sample in samples]
    except TflqError:
        return False
    pairs = (pair for got, want in zip(results, expected, strict=True) for pair in zip(got, want, strict=True))
    return any(digest(a) != digest(b) for a, b in pairs)
