"""A target's results against what a suite expects: a verdict a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tflq.conformance.jobs import Job
from tflq.conformance.suite import Case, arrays
from tflq.inspection.difference import Difference, difference
from tflq.storage.archive import Archive


class Result(str, Enum):
    """What a target did with a case."""

    PASSES = "passes"
    DIFFERS = "differs"
    REFUSED = "refused"  # but should have run
    ACCEPTED = "accepted"  # but should have been refused
    ENDED = "ended"  # the target crashed, hung or said nothing
    MALFORMED = "malformed"  # outputs of another size


@dataclass(frozen=True, slots=True)
class Judged:
    """One case. `difference` is that of the first output that differs, in sample `sample`; `causes` give its bits."""

    case: Case
    result: Result
    reason: str = ""
    sample: int | None = None
    difference: Difference | None = None
    causes: tuple[str, ...] = ()
    is_explained: bool = False  # causes were sought for it
    fault: str = ""  # why no cause could be sought

    @property
    def fails(self) -> bool:
        """Whether the target is not what the suite expects; a refusal is, where the target takes no such model."""
        return self.result not in (Result.PASSES, Result.REFUSED)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A target held against a suite. `profile` is whose outputs the suite expects."""

    target: str
    profile: str
    level: str
    cases: tuple[Judged, ...]

    def count(self, result: Result) -> int:
        """How many cases came to that."""
        return sum(judged.result == result for judged in self.cases)

    @property
    def failing(self) -> tuple[Judged, ...]:
        """The cases that fail."""
        return tuple(judged for judged in self.cases if judged.fails)


def judge(job: Job, archive: Archive, cases: Sequence[Case], ended: Mapping[str, str]) -> tuple[Judged, ...]:
    """A verdict for every case. `ended` says in which the target ended, and how."""
    return tuple(_judged(job, archive, case, ended.get(case.id, "")) for case in cases)


def _judged(job: Job, archive: Archive, case: Case, how: str) -> Judged:
    refusal = job.refusal(case)
    if case.is_refused:
        if refusal is not None:
            return Judged(case, Result.PASSES, refusal)
        return Judged(case, Result.ENDED, how) if how else Judged(case, Result.ACCEPTED, case.aim)
    if refusal is not None:
        return Judged(case, Result.REFUSED, refusal)
    like = [arrays(archive, sample) for sample in case.expected]
    if not job.is_done(case):
        return Judged(case, Result.ENDED, how or "no outputs")
    for sample, (outputs, want) in enumerate(zip(job.outputs(case, like), like, strict=True)):
        for one, other in zip(outputs, want, strict=True):
            if isinstance(one, str):
                return Judged(case, Result.MALFORMED, one, sample)
            d = difference(other, one, sample)
            if not d.same:
                return Judged(case, Result.DIFFERS, _brief(d), sample, d)
    return Judged(case, Result.PASSES)


def _brief(d: Difference) -> str:
    where = "" if d.first is None else f", first at {list(d.first.index)}: "
    values = "" if d.first is None else f"expected {d.first.expected}, got {d.first.got}"
    count = f"{d.differing:,} of {d.elements:,} elements differ"
    return f"{count}, by up to {d.largest} {d.unit}{where}{values}"
