"""Requirements of conformance with stable identifiers, the cases that cover them, and the levels that a run meets.

An identifier is OPERATOR/TYPE/ASPECT: `computes`; `OPTION=VALUE`, for the values that the grids of geometries have;
`rounding`, which only cases cover on which profiles of other rounding rules differ. Requirements come from the kernel
tables, the facts of operators and the grids. A level is a frozen list of identifiers, which `tools/make_levels.py`
writes to `schemas/conformance_levels.json`; another list is another version.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from tflq.devices.conformance.grids import BASIC
from tflq.devices.conformance.grids.geometric import choice_of, spaces
from tflq.devices.conformance.grids.kinds import PROFILE, RELEASE, kind_of, kinds
from tflq.devices.conformance.judging import Judged, Result, Verdicts
from tflq.devices.conformance.suite import Case
from tflq.display import display_by
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.profiles import by_name
from tflq.errors import InputError
from tflq.model.ir.schema import data_text
from tflq.model.storage.documents import read_document

LEVELS = ("smoke", "standard", "full")
COMPUTES, ROUNDING = "computes", "rounding"
#: Extents of images, which are no options of the operator.
_EXTENTS = ("height", "width", "rows")
_ACTIVATIONS = ("RELU", "RELU_N1_TO_1", "RELU6")


def requirements() -> Iterator[tuple[str, str]]:
    """Yield every identifier with the lowest level that asks for it.

    Operators that the reference resolver does not register have none: no run of the reference could meet them.
    """
    for op in sorted(by_name(PROFILE).kernels):
        fact = OPERATORS.get(op)
        if fact is None or fact.quantize is None or not fact.highest(RELEASE, optimized=False):
            continue
        for kind in kinds(op):
            space = spaces(kind).get(op)
            yield f"{op}/{kind}/{COMPUTES}", _level_of(op, kind)
            for name, values in {} if space is None else space.options.items():
                yield from ((f"{op}/{kind}/{name}={value}", "smoke") for value in values if name not in _EXTENTS)
            if fact.products is not None and kind != "int16":  # int16 rounds once in every runtime
                yield f"{op}/{kind}/{ROUNDING}", "standard" if op in spaces(kind) else "full"


def _level_of(op: str, kind: str) -> str:
    return "smoke" if (op, kind) in _basic() else "full"


@cache
def _basic() -> frozenset[tuple[str, str | None]]:
    """Return the operators and types that the basic grids ask about."""
    return frozenset((draft.op, kind_of(draft.types)) for family in BASIC for draft in family.drafts(0))


def cover_by(case: Case) -> Iterator[str]:
    """Yield the identifiers that a case covers; none if a target must refuse it."""
    kind = kind_of(case.types)
    if kind is None or case.is_refused:
        return
    start = f"{case.op}/{kind}/"
    yield start + COMPUTES
    for name, value in (choice_of(case.aim) or {}).items():
        if name not in _EXTENTS:
            yield f"{start}{name}={value}"
    ending = case.aim.rpartition("; ")[2]
    if ending in _ACTIVATIONS:
        yield f"{start}activation={ending}"
    if case.tells:  # profiles differ in products by their rounding
        yield start + ROUNDING


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Requirements that a claim leaves out: a pattern of identifiers, why, and since when."""

    requirement: str
    reason: str
    date: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A level and its requirements by result. `failed` have a case that does not pass, `without_case` have none."""

    level: str
    passed: tuple[str, ...]
    failed: tuple[str, ...]
    without_case: tuple[str, ...]
    excluded: tuple[str, ...]

    @property
    def is_met(self) -> bool:
        """True if every requirement passes that is not excluded."""
        return bool(self.passed) and not self.failed and not self.without_case


@display_by("conform.requirements:requirements_report")
@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a run: its target, the version of the levels, each level, and exclusions that match nothing."""

    target: str
    version: int
    levels: tuple[Standing, ...]
    exclusions: tuple[Exclusion, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def met(self) -> str:
        """The highest level that is met with all levels below it; empty if none is."""
        met = ""
        for standing in self.levels:
            if not standing.is_met:
                break
            met = standing.level
        return met


def claim_of(verdicts: Verdicts, exclusions: Sequence[Exclusion] = ()) -> Claim:
    """Return the levels that a run meets. A requirement passes if every case that covers it does."""
    frozen = levels()
    passed: dict[str, bool] = {}
    for one in verdicts.cases:
        for requirement in cover_by(one.case):
            passed[requirement] = passed.get(requirement, True) and _passes(one)
    everything = [requirement for level in LEVELS for requirement in frozen["levels"][level]]
    matched = {e.requirement: set(fnmatch.filter(everything, e.requirement)) for e in exclusions}
    left_out = set().union(*matched.values())
    standings, wanted = [], []
    for level in LEVELS:
        wanted += frozen["levels"][level]
        asked = [requirement for requirement in wanted if requirement not in left_out]
        standings.append(
            Standing(
                level,
                tuple(r for r in asked if passed.get(r) is True),
                tuple(r for r in asked if passed.get(r) is False),
                tuple(r for r in asked if r not in passed),
                tuple(r for r in wanted if r in left_out),
            )
        )
    unused = tuple(pattern for pattern, found in matched.items() if not found)
    return Claim(verdicts.target, int(frozen["version"]), tuple(standings), tuple(exclusions), unused)


def _passes(one: Judged) -> bool:
    return one.result is Result.PASSES


@cache
def levels() -> Mapping[str, Any]:
    """Return the frozen levels: the version, and the identifiers that each level adds to those below it."""
    document: Mapping[str, Any] = json.loads(data_text("conformance_levels.json"))
    return document


def read_exclusions(path: str) -> tuple[Exclusion, ...]:
    """Return the exclusions of a YAML or JSON file: a list of `requirement`, `reason` and `date` (YYYY-MM-DD).

    Raises:
        FileAccessError: The file cannot be read.
        InputError: An entry is incomplete, or its date is none.
    """
    document = read_document(path)
    if not isinstance(document, list):
        raise InputError("exclusions", name=path, expected="a list of requirement, reason and date")
    return tuple(_exclusion(path, number, item) for number, item in enumerate(document))


def _exclusion(path: str, number: int, item: Any) -> Exclusion:
    keys = ("requirement", "reason", "date")
    if not isinstance(item, dict) or set(item) != set(keys) or not all(str(item[key]).strip() for key in keys):
        raise InputError(f"exclusion {number}", name=path, expected="requirement, reason and date", got=f"{item!r:.80}")
    try:
        when = date.fromisoformat(str(item["date"]))
    except ValueError:
        raise InputError(
            f"date of exclusion {number}", name=path, expected="YYYY-MM-DD", got=f"{item['date']!r:.40}"
        ) from None
    return Exclusion(str(item["requirement"]), str(item["reason"]), when.isoformat())
