"""Build a suite from drafts: the profile's outputs, inputs on which other profiles differ, and levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import islice
from multiprocessing import get_context

import numpy as np

from tflq.devices.conformance.draft import Draft, Sample
from tflq.devices.conformance.grids import FOCUSES, drafts
from tflq.devices.conformance.grids.refused import REFUSED
from tflq.devices.conformance.suite import Case, Suite, arrays
from tflq.engine.api.files import load
from tflq.engine.interpreter import Plan, make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError, UnknownNameError
from tflq.model.ir import Model, view
from tflq.model.storage.archive import Archive
from tflq.model.storage.arrays import digest
from tflq.progress import Progress, silent
from tflq.proof.proof import contrast
from tflq.proof.verdicts import Word
from tflq.typing import Array

#: Profiles whose arithmetic a device may have instead: if one gives other bits, a case must reveal it.
CONTRASTS = ("litert-opt", "litert-xnnpack", "tflite-2.14-ref", "tflm", "litert-ref+single-rounding", "litert-ref")
#: Operators with generated inputs that reach the differences between two profiles.
_REACHED = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"))
#: Parts of a suite that each process builds; progress is reported after each.
_TURNS = 16
#: Names of fused activations in aims.
_ACTIVATIONS = frozenset(("no activation", "RELU", "RELU6"))


@dataclass(frozen=True, slots=True, eq=False)
class SuiteData:
    """A suite and the data of its digests; `left_out` counts drafts that the profile refuses."""

    suite: Suite
    data: dict[str, Array]
    left_out: int


@dataclass(frozen=True, slots=True)
class Order:
    """The specification of a suite. `every` = n takes every n-th draft, from the second on; 1 takes all.

    `shard` (i, n) takes every n-th case of the level, from the i-th on. A `focus` has one level and cases of its own.
    """

    profile: str = "litert-ref"
    level: str = "standard"
    seed: int = 0
    every: int = 1
    shard: tuple[int, int] = (1, 1)
    focus: str | None = None

    def drafts(self) -> Iterator[tuple[int, Draft, str]]:
        """Yield number, draft and level of each case.

        The first case of its operator, types and aim, with any activation, belongs to smoke.
        """
        found = self._all()
        if self.focus is not None:
            found = ((number, draft, "smoke") for number, draft in enumerate(_grid(self.seed, self.level, self.focus)))
        yield from islice(found, self.shard[0] - 1, None, self.shard[1])

    def _all(self) -> Iterator[tuple[int, Draft, str]]:
        covered: set[tuple[str, ...]] = set()
        grid = _grid(self.seed, "standard" if self.level == "smoke" else self.level, None)
        for number, draft in islice(enumerate(grid), self.every > 1, None, self.every):
            key = (draft.op, draft.types, *(p for p in draft.aim.split("; ") if p not in _ACTIVATIONS))
            level = "standard" if key in covered else "smoke"
            covered.add(key)
            if self.level != "smoke" or level == "smoke":
                yield number, draft, level


def make(order: Order, jobs: int = 1, tell: Progress = silent) -> SuiteData:
    """Build a suite of a profile's results in `jobs` processes, whose number changes no byte of it.

    Raises:
        UnknownNameError: No profile or focus has that name.
    """
    if order.focus is not None and order.focus not in FOCUSES:
        raise UnknownNameError("focus", order.focus, tuple(FOCUSES))
    chosen = by_name(order.profile)
    data: dict[str, Array] = {}
    cases: list[Case] = []
    left_out, turns = 0, _TURNS * jobs
    tell("making cases", 0, turns)
    with ProcessPoolExecutor(jobs, get_context("spawn")) if jobs > 1 else nullcontext() as pool:
        each = partial(_part, order, turns)
        for turn, part in enumerate(map(each, range(turns)) if pool is None else pool.map(each, range(turns)), 1):
            tell("making cases", turn, turns)
            data |= part.data
            cases += part.cases
            left_out += part.left_out
    cases.sort(key=lambda case: case.id)
    suite = Suite(chosen.name, order.level, order.seed, version("tflq"), tuple(cases), order.shard)
    return SuiteData(suite, data, left_out)


def restated(archive: Archive, suite: Suite, profile: str) -> SuiteData:
    """Return a suite with the outputs of another profile: the same models, inputs and levels.

    Cases that this profile refuses are left out, except those that a target must refuse. A learned profile does not
    know what its device must refuse, so that these are left out, too.

    Raises:
        UnknownNameError: No profile has that name.
    """
    chosen = by_name(profile)
    others = [by_name(name) for name in CONTRASTS if name != profile]
    data: dict[str, Array] = {}
    cases: list[Case] = []
    for case in suite.cases:
        (file,) = arrays(archive, [case.model])
        model, samples = load(file.tobytes()), [tuple(arrays(archive, sample)) for sample in case.samples]
        try:
            plan = make_plan(model, chosen)
            expected = [_run(plan, sample) for sample in samples]
        except TflqError:
            expected = []
        if case.is_refused == bool(expected) or (case.is_refused and chosen.is_learned):
            continue
        tells = {each.name for each in others if expected and _gives_other(model, each, samples, expected)}
        data |= {digest(a): a for a in (file, *(a for rows in (samples, expected) for row in rows for a in row))}
        outputs = tuple(tuple(map(digest, row)) for row in expected)
        cases.append(replace(case, tells=tuple(sorted(tells)), expected=outputs))
    return SuiteData(replace(suite, profile=chosen.name, cases=tuple(cases)), data, len(suite.cases) - len(cases))


@lru_cache(maxsize=1)
def _drafts(order: Order) -> tuple[tuple[int, Draft, str], ...]:
    return tuple(order.drafts())


@lru_cache(maxsize=2)
def _grid(seed: int, level: str, focus: str | None) -> tuple[Draft, ...]:
    """Return all drafts, which every part and shard of a suite selects from."""
    return tuple(drafts(seed, level) if focus is None else FOCUSES[focus](seed))


@dataclass(slots=True, eq=False)
class _Part:
    """The part of a suite that one process builds."""

    cases: list[Case]
    data: dict[str, Array]
    left_out: int = 0


def _part(order: Order, turns: int, turn: int) -> _Part:
    """Return every `turns`-th case, from `turn` on."""
    profile = by_name(order.profile)
    others = [by_name(name) for name in CONTRASTS if name != order.profile]
    part = _Part([], {})
    for number, draft, level in islice(_drafts(order), turn, None, turns):
        case = _case(number, draft, profile, others, level, part.data)
        part.left_out += case is None
        part.cases += [] if case is None else [case]
    return part


def _case(
    number: int, draft: Draft, profile: Profile, others: Sequence[Profile], level: str, data: dict[str, Array]
) -> Case | None:
    file = draft.model()
    model = load(file)
    must_refuse = draft.aim.startswith(REFUSED)
    if must_refuse and profile.is_learned:
        return None
    samples, tells, untold = draft.samples, set[str](), others
    expected: tuple[Sample, ...] = ()
    try:
        plan = make_plan(model, profile)
        samples, verdicts = _samples(draft, model, profile, others)
        tells |= {name for name, word in verdicts.items() if word == Word.DIFFERS}
        untold = [p for p in others if verdicts.get(p.name, Word.UNDECIDED) == Word.UNDECIDED]
        expected = tuple(_run(plan, sample) for sample in samples)
    except TflqError:
        if not must_refuse:
            return None
    if must_refuse == bool(expected):
        return None
    tells |= {p.name for p in untold if expected and _gives_other(model, p, samples, expected)}
    stored = [np.frombuffer(file, np.uint8), *(a for rows in (samples, expected) for row in rows for a in row)]
    data |= {digest(a): a for a in stored}
    name = f"{number:05d}-{draft.op.lower()}"
    digests = [tuple(tuple(map(digest, row)) for row in rows) for rows in (samples, expected)]
    return Case(name, draft.op, draft.types, level, draft.aim, tuple(sorted(tells)), digest(stored[0]), *digests)


def _samples(
    draft: Draft, model: Model, profile: Profile, others: Sequence[Profile]
) -> tuple[tuple[Sample, ...], dict[str, Word]]:
    """Return the draft's own samples with one for each other arithmetic that differs, and what is proved of each."""
    if draft.op not in _REACHED:
        return draft.samples, {}
    witnesses: dict[bytes, Sample] = {}
    verdicts = contrast(model, 0, profile, others)
    for verdict in verdicts:
        if verdict.witness is not None:
            inputs = verdict.witness.inputs
            sample = tuple(inputs[t] for t in view(model).inputs)
            witnesses[b"".join(a.tobytes() for a in sample)] = sample
    return (*draft.samples, *witnesses.values()), {verdict.second: verdict.word for verdict in verdicts}


def reaching(draft: Draft, profile: str) -> Draft:
    """Return a draft with inputs that reach the differences between a profile and others, if it is a contraction."""
    others = [by_name(name) for name in CONTRASTS if name != profile]
    try:
        return replace(draft, samples=_samples(draft, load(draft.model()), by_name(profile), others)[0])
    except TflqError:
        return draft


def _run(plan: Plan, sample: Sample) -> Sample:
    values = run(plan, dict(zip(plan.inputs, sample, strict=True))).values
    return tuple(values[tensor] for tensor in plan.outputs)


def _gives_other(model: Model, profile: Profile, samples: Sequence[Sample], expected: Sequence[Sample]) -> bool:
    try:
        plan = make_plan(model, profile)
        results = [_run(plan, sample) for sample in samples]
    except TflqError:
        return False
    pairs = (pair for outputs, want in zip(results, expected, strict=True) for pair in zip(outputs, want, strict=True))
    return any(digest(a) != digest(b) for a, b in pairs)
