"""A target's results against what a suite expects: a verdict a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tflq.conformance.jobs import Job
from tflq.conformance.suite import Case, arrays
from tflq.inspection.difference import Difference, difference
from tflq.storage.archive import Archive


class SuiteVerdict(str, Enum):
    """The verdict on a target."""

    PASSES = "passes"
    FAILS = "fails"
    ENDED = "target failed"  # no case fails, but the target did not end as it should after its last answer
    NOTHING = "nothing compared"  # no case was compared: there is none, or the target refused all
    REFUSES = "refuses too much"  # more than is allowed


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
    """One case. `difference` is that of the first output that differs, in sample `sample`; `causes` give its bits.

    `differences` are those of all outputs that differ, by sample and position.
    """

    case: Case
    result: Result
    reason: str = ""
    sample: int | None = None
    difference: Difference | None = None
    causes: tuple[str, ...] = ()
    differences: tuple[tuple[int, int, Difference], ...] = ()
    is_explained: bool = False  # causes were sought for it
    fault: str = ""  # why no cause could be sought

    @property
    def fails(self) -> bool:
        """True if the target is not what the suite expects; a refusal is, where the target takes no such model."""
        return self.result not in (Result.PASSES, Result.REFUSED)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The results of a target in a suite. `profile` is whose outputs the suite expects.

    `endings` describe calls of the target that failed after it had answered all of their cases. `most_refused` is how
    many cases may be refused; None if any number may, except all.
    """

    target: str
    profile: str
    level: str
    cases: tuple[Judged, ...]
    endings: tuple[str, ...] = ()
    most_refused: int | None = None

    @property
    def verdict(self) -> SuiteVerdict:
        """The worst that is known, of the cases and of the run."""
        return SuiteVerdict.FAILS if self.failing else self.rest

    @property
    def rest(self) -> SuiteVerdict:
        """The verdict if every case that fails were as expected."""
        if self.endings:
            return SuiteVerdict.ENDED
        if not self.compared and (self.runnable or not self.cases):
            return SuiteVerdict.NOTHING
        if self.most_refused is not None and self.count(Result.REFUSED) > self.most_refused:
            return SuiteVerdict.REFUSES
        return SuiteVerdict.PASSES

    @property
    def runnable(self) -> int:
        """How many cases a target has to run; the others it has to refuse."""
        return sum(not judged.case.is_refused for judged in self.cases)

    @property
    def compared(self) -> int:
        """How many cases' outputs were compared with the expected ones, bit by bit."""
        seen = (Result.PASSES, Result.DIFFERS)
        return sum(not judged.case.is_refused and judged.result in seen for judged in self.cases)

    def count(self, result: Result) -> int:
        """Return how many cases came to that."""
        return sum(judged.result == result for judged in self.cases)

    @property
    def failing(self) -> tuple[Judged, ...]:
        """The cases that fail."""
        return tuple(judged for judged in self.cases if judged.fails)


def judge(job: Job, archive: Archive, cases: Sequence[Case], ended: Mapping[str, str]) -> tuple[Judged, ...]:
    """Return a verdict for every case. `ended` says in which the target ended, and how."""
    return tuple(_judged(job, archive, case, ended.get(case.id, "")) for case in cases)


def _judged(job: Job, archive: Archive, case: Case, how: str) -> Judged:
    refusal, left = job.refusal(case), job.leftovers(case)
    if refusal is not None and left:
        return Judged(case, Result.MALFORMED, f"refused, but also left {left[0]}: {refusal}")
    if case.is_refused:
        if refusal is not None:
            return Judged(case, Result.PASSES, refusal)
        if how or not left:
            return Judged(case, Result.ENDED, how or "neither outputs nor a refusal")
        return Judged(case, Result.ACCEPTED, case.aim)
    if refusal is not None:
        return Judged(case, Result.REFUSED, refusal)
    like = [arrays(archive, sample) for sample in case.expected]
    if not job.is_done(case):
        return Judged(case, Result.ENDED, how or "no outputs")
    found = []
    for sample, (outputs, want) in enumerate(zip(job.outputs(case, like), like, strict=True)):
        for position, (one, other) in enumerate(zip(outputs, want, strict=True)):
            if isinstance(one, str):
                return Judged(case, Result.MALFORMED, one, sample)
            d = difference(other, one, sample)
            if not d.same:
                found.append((sample, position, d))
    if not found:
        return Judged(case, Result.PASSES)
    sample, _, d = found[0]
    return Judged(case, Result.DIFFERS, _brief(d), sample, d, differences=tuple(found))


def _brief(d: Difference) -> str:
    where = "" if d.first is None else f", first at {list(d.first.index)}: "
    values = "" if d.first is None else f"expected {d.first.expected}, got {d.first.got}"
    count = f"{d.differing:,} of {d.elements:,} elements differ"
    return f"{count}, by up to {d.largest} {d.unit}{where}{values}"
