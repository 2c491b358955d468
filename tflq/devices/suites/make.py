"""Build a suite from drafts, and keep it on disk.

A suite of cases on disk: one archive that stores equal arrays and models once; equal suites have equal bytes.

The archive (`.npz`, no pickles) holds `suite`, UTF-8 JSON, and `data/DIGEST` for every model (uint8) and array, named
by the first 32 digits of the SHA-256 of its type, shape and bytes. docs/conformance.md describes it.

Build a suite from drafts: the profile's outputs, inputs on which other profiles differ, and levels.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import islice
from multiprocessing import get_context
from typing import Any

import numpy as np

from tflq.devices.grids import FOCUSES, drafts
from tflq.devices.grids.rows import REFUSED
from tflq.devices.suites.draft import Draft, Sample
from tflq.engine.api.files import load
from tflq.engine.interpreter import Plan, make_plan, run
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.profiles import Profile, by_name
from tflq.errors import InputError, OptionError, TflqError, UnknownNameError
from tflq.interrupts import Progress, silent
from tflq.model.ir import Model, view
from tflq.model.storage.arrays import Archive, digest, write_arrays
from tflq.model.storage.documents import read_json
from tflq.proof.operator import Word
from tflq.proof.proof import contrast
from tflq.typing import Array

SCHEMA = "tflq/suite/1"
MANIFEST = "suite"
_DIGEST = re.compile(r"[0-9a-f]{32}")
_ID = re.compile(r"[0-9]{5}-[a-z0-9_]{1,64}")
LEVELS = ("smoke", "standard", "exhaustive")


@dataclass(frozen=True, slots=True)
class Case:
    """One model with its inputs and expected outputs; digests represent models and arrays.

    `aim` is the subject of the test; `tells` names profiles that give other bits than expected. `samples` holds the
    inputs of each run, `expected` the outputs; it is empty if the model must be refused.
    """

    id: str
    op: str
    types: str
    level: str
    aim: str
    tells: tuple[str, ...]
    model: str
    samples: tuple[tuple[str, ...], ...]
    expected: tuple[tuple[str, ...], ...]

    @property
    def digest(self) -> str:
        """A digest of the model and its inputs, by which the case is known in suites of other versions."""
        return hashlib.sha256(json.dumps([self.model, self.samples]).encode()).hexdigest()[:32]

    @property
    def is_refused(self) -> bool:
        """True if a target must refuse the model."""
        return not self.expected


@dataclass(frozen=True, slots=True)
class Suite:
    """All cases, and the profile whose outputs are expected; `shard` (i, n): the suite is the i-th of n parts.

    `ops` are the operators that were chosen; empty: all.
    """

    profile: str
    level: str
    seed: int
    version: str  # of tflq
    cases: tuple[Case, ...]
    shard: tuple[int, int] = (1, 1)
    ops: tuple[str, ...] = ()

    def part(self, level: str, shard: tuple[int, int] = (1, 1), ops: Collection[str] = ()) -> Suite:
        """Return the cases up to that level, of `ops` if any; shard (i, n) takes every n-th of them, from the i-th on.

        Raises:
            UnknownNameError: There is no such operator, or the suite has no case of it.
        """
        kept = [c for c in self.cases if LEVELS.index(c.level) <= LEVELS.index(level)]
        chosen = operators_named(ops)
        if missing := [op for op in chosen if all(op != case.op for case in kept)]:
            raise UnknownNameError("operator of the suite at this level", missing[0], sorted({c.op for c in kept}))
        kept = [case for case in kept if not chosen or case.op in chosen]
        return replace(self, level=level, cases=tuple(kept[shard[0] - 1 :: shard[1]]), ops=chosen or self.ops)

    def shard_of(self, shard: tuple[int, int]) -> tuple[int, int]:
        """Return which part of the whole suite a shard of this one is.

        Raises:
            OptionError: This suite is a part itself, and the shard is not all of it.
        """
        if self.shard != (1, 1) and shard != (1, 1):
            raise OptionError(f"--shard: the suite is part {self.shard[0]}/{self.shard[1]} itself: leave --shard out")
        return self.shard if shard == (1, 1) else shard


def operators_named(words: Iterable[str]) -> tuple[str, ...]:
    """Return the operators of these names, in upper case, in alphabetical order.

    Raises:
        UnknownNameError: There is no such operator.
    """
    names = sorted({word.upper() for word in words})
    if unknown := [name for name in names if name not in OPERATORS]:
        raise UnknownNameError("operator", unknown[0], tuple(OPERATORS))
    return tuple(names)


def write_suite(path: str, suite: Suite, data: Mapping[str, Array]) -> None:
    """Write a suite with the data of its digests."""
    document = {
        "schema": SCHEMA,
        "profile": suite.profile,
        "level": suite.level,
        "seed": suite.seed,
        "version": suite.version,
        "cases": [[getattr(c, name) for name in Case.__slots__] for c in suite.cases],
    }
    document |= {"shard": list(suite.shard)} if suite.shard != (1, 1) else {}
    document |= {"ops": list(suite.ops)} if suite.ops else {}
    text = json.dumps(document, separators=(",", ":")).encode()
    arrays = {MANIFEST: np.frombuffer(text, np.uint8)}
    write_arrays(path, arrays | {f"data/{d}": data[d] for d in sorted(data)}, compress=True)


def read_suite(archive: Archive) -> Suite:
    """Return the suite of an open archive, checked; its data are read on demand.

    Raises:
        InputError: The archive holds no suite, or one that does not match the schema.
    """
    source = archive.source
    if MANIFEST not in archive:
        raise InputError("is not a conformance suite", name=source)
    manifest = read_json(archive[MANIFEST].tobytes(), source)
    is_suite = isinstance(manifest, dict) and manifest.get("schema") == SCHEMA
    if not is_suite or not isinstance(manifest.get("cases"), list):
        raise InputError("is not a conformance suite that this version reads", name=source, expected=SCHEMA)
    words = [manifest.get(name) for name in ("profile", "level", "version")]
    seed = manifest.get("seed")
    if not all(isinstance(w, str) for w in words) or words[1] not in LEVELS or not isinstance(seed, int):
        raise InputError("does not name the profile whose outputs it holds", name=source)
    cases = tuple(_suite_case(row, archive) for row in manifest["cases"])
    if len({case.id for case in cases}) != len(cases):
        raise InputError("has two cases of the same name", name=source)
    shard = manifest.get("shard", [1, 1])
    if not isinstance(shard, list) or len(shard) != 2 or not all(type(n) is int and 1 <= n <= shard[1] for n in shard):
        raise InputError("is a malformed part of a suite", name=source, got=f"{shard!r:.80}")
    ops = manifest.get("ops", [])
    if not _strings(ops):
        raise InputError("has a malformed choice of operators", name=source, got=f"{ops!r:.80}")
    return Suite(str(words[0]), str(words[1]), seed, str(words[2]), cases, (shard[0], shard[1]), tuple(ops))


def _suite_case(row: Any, archive: Archive) -> Case:
    if not isinstance(row, list) or len(row) != len(Case.__slots__):
        raise InputError("holds a malformed case", name=archive.source)
    name, op, types, level, aim, tells, model, samples, expected = row
    words = (name, op, types, level, aim, model)
    fits = all(isinstance(w, str) for w in words) and level in LEVELS and _ID.fullmatch(name) and _strings(tells)
    if (
        not fits
        or not samples
        or not _rows(samples)
        or not _rows(expected)
        or (expected and len(expected) != len(samples))
    ):
        raise InputError("holds a malformed case", name=archive.source, got=str(name)[:80])
    digests = [model, *(d for sample in (*samples, *expected) for d in sample)]
    if not all(_DIGEST.fullmatch(d) and f"data/{d}" in archive for d in digests):
        raise InputError("lacks data of a case", name=archive.source, got=name)
    tuples = [tuple(map(tuple, rows)) for rows in (samples, expected)]
    return Case(name, op, types, level, aim, tuple(tells), model, *tuples)


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _rows(value: Any) -> bool:
    return isinstance(value, list) and all(map(_strings, value))


def arrays(archive: Archive, digests: Iterable[str]) -> list[Array]:
    """Return the arrays of digests, each checked against its name.

    Raises:
        InputError: The data were changed.
    """
    return [_check(archive, name) for name in digests]


def _check(archive: Archive, name: str) -> Array:
    array = archive[f"data/{name}"]
    if digest(array) != name:
        raise InputError("holds data that do not match their digest", name=archive.source, got=name)
    return array


def model_of(archive: Archive, case: Case) -> bytes:
    """Return the case's model file."""
    return _check(archive, case.model).tobytes()


def kept(cases: Sequence[Case], archive: Archive) -> dict[str, Array]:
    """Return all data of some cases."""
    names = {d for c in cases for d in (c.model, *(d for s in (*c.samples, *c.expected) for d in s))}
    return {name: _check(archive, name) for name in sorted(names)}


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
class SuiteOrder:
    """The specification of a suite. `every` = n takes every n-th draft, from the second on; 1 takes all.

    `shard` (i, n) takes every n-th case of the level, from the i-th on. A `focus` has one level and cases of its own.
    `ops` takes only cases of these operators, under the names that they have in the suite of all; empty: all.
    """

    profile: str = "litert-ref"
    level: str = "standard"
    seed: int = 0
    every: int = 1
    shard: tuple[int, int] = (1, 1)
    focus: str | None = None
    ops: tuple[str, ...] = ()

    def drafts(self) -> Iterator[tuple[int, Draft, str]]:
        """Yield number, draft and level of each case.

        The first case of its operator, types and aim, with any activation, belongs to smoke.
        """
        found = self._all()
        if self.focus is not None:
            found = ((number, draft, "smoke") for number, draft in enumerate(_grid(self.seed, self.level, self.focus)))
        found = (one for one in found if not self.ops or one[1].op in self.ops)
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


def make(order: SuiteOrder, jobs: int = 1, tell: Progress = silent) -> SuiteData:
    """Build a suite of a profile's results in `jobs` processes, whose number changes no byte of it.

    Raises:
        UnknownNameError: No profile or focus has that name, or suites have no case of an operator.
    """
    if order.focus is not None and order.focus not in FOCUSES:
        raise UnknownNameError("focus", order.focus, tuple(FOCUSES))
    if order.ops:
        known = sorted({draft.op for _, draft, _ in replace(order, ops=(), shard=(1, 1)).drafts()})
        if missing := [op for op in order.ops if op not in known]:
            raise UnknownNameError("operator of suites", missing[0], known)
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
    suite = Suite(chosen.name, order.level, order.seed, version("tflq"), tuple(cases), order.shard, order.ops)
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
def _drafts(order: SuiteOrder) -> tuple[tuple[int, Draft, str], ...]:
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


def _part(order: SuiteOrder, turns: int, turn: int) -> _Part:
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
