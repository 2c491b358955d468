"""Judge a target's results against a suite's expectations: one verdict per case."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tflq.comparison.inspection.difference import Difference, difference, with_one_nan
from tflq.devices.suites.jobs import CaseFolder
from tflq.devices.suites.make import Case, arrays
from tflq.diagnosis.siblings import NONE, Joint
from tflq.model.storage.arrays import Archive, digest
from tflq.texts import Tabular, display_by


class SuiteVerdict(str, Enum):
    """The verdict on a target."""

    PASSES = "passes"
    FAILS = "fails"
    ACCEPTED = "accepted"  # cases fail, and a baseline accepts all of them
    INTERRUPTED = "interrupted"  # cases were left when the run was stopped
    ENDED = "target failed"  # no case fails, but the target ended abnormally after its last answer
    NOTHING = "nothing compared"  # no case was compared: there is none, or the target refused all
    REFUSES = "refuses too much"  # more than the limit


class CaseResult(str, Enum):
    """The result of a target in a case."""

    PASSES = "passes"
    DIFFERS = "differs"
    REFUSED = "refused"  # it should have run
    ACCEPTED = "accepted"  # it should have been refused
    ENDED = "ended"  # the target crashed, hung or gave no answer
    MALFORMED = "malformed"  # outputs of another size


class Response(str, Enum):
    """The way in which a target answers a case, apart from its bits."""

    RUNS = "runs"
    REFUSES = "refuses"
    FAILS = "fails"  # it ends, or leaves outputs of another size


@dataclass(frozen=True, slots=True)
class Judged:
    """One case. `difference` is that of the first differing output, in sample `sample`; `causes` reproduce its bits.

    `differences` are those of all outputs that differ, by sample and position.
    """

    case: Case
    result: CaseResult
    reason: str = ""
    sample: int | None = None
    difference: Difference | None = None
    causes: tuple[str, ...] = ()
    differences: tuple[tuple[int, int, Difference], ...] = ()
    is_explained: bool = False  # causes were searched for it
    fault: str = ""  # reason why no cause could be searched
    mark: str = ""  # digest of the case and its differences, if these were not kept
    digest: str = ""  # of the case's model and inputs
    outputs: str = ""  # digest of the target's outputs, if they are of the right sizes
    size: int = 0  # bytes of the model and its inputs
    place: str = ""  # where its differences are, in words, if no cause is known

    @property
    def fails(self) -> bool:
        """True if the target's result differs from the suite's.

        A refusal of a model that the target does not take is such a result, too.
        """
        return self.result not in (CaseResult.PASSES, CaseResult.REFUSED)

    @property
    def answer(self) -> Response:
        """The target's answer to the case."""
        if self.result in (CaseResult.ENDED, CaseResult.MALFORMED):
            return Response.FAILS
        refuses = self.result == CaseResult.REFUSED or (self.result == CaseResult.PASSES and self.case.is_refused)
        return Response.REFUSES if refuses else Response.RUNS


@display_by("conform:conform_card", "verdict_document", "cases")
@dataclass(frozen=True, slots=True)
class Verdicts(Tabular):
    """The results of a target in a suite. `profile` is the one whose outputs the suite expects.

    `endings` describe calls of the target that failed after it had answered all of their cases. `most_refused` is the
    limit on refused cases; None for any number except all. `stop` is the signal that ended the run before its last
    `left` cases. `shard` is the part of the suite with the digest `suite`; empty: it is not known. `joint` is
    the evidence of arithmetics that were compared with every case. `accepted`: a baseline accepts every failing case.
    `left_out` is the number of cases that the expected profile refuses.
    `seed` and `version` of tflq are those that the suite was made with; None and empty: they are not known.
    `ops` are the operators whose cases were run; empty: all of the suite's.
    """

    target: str
    profile: str
    level: str
    cases: tuple[Judged, ...]
    endings: tuple[str, ...] = ()
    most_refused: int | None = None
    stop: BaseException | None = None
    left: int = 0
    suite: str = ""
    shard: tuple[int, int] = (1, 1)
    joint: Joint = NONE
    accepted: bool = False
    seed: int | None = None
    version: str = ""
    left_out: int = 0
    ops: tuple[str, ...] = ()

    def leaving_out(self, count: int) -> Verdicts:
        """Return the verdicts on a suite of which `count` cases were left out."""
        return replace(self, left_out=count) if count else self

    @property
    def verdict(self) -> SuiteVerdict:
        """The worst verdict on the cases and the run; that of an interrupted run is that it was interrupted."""
        if self.left:
            return SuiteVerdict.INTERRUPTED
        if self.accepted and self.failing and self.rest == SuiteVerdict.PASSES:
            return SuiteVerdict.ACCEPTED
        return SuiteVerdict.FAILS if self.failing else self.rest

    @property
    def rest(self) -> SuiteVerdict:
        """The verdict if every failing case had passed."""
        if self.left:
            return SuiteVerdict.INTERRUPTED
        if self.endings:
            return SuiteVerdict.ENDED
        if not self.compared and (self.runnable or not self.cases):
            return SuiteVerdict.NOTHING
        if self.most_refused is not None and self.count(CaseResult.REFUSED) > self.most_refused:
            return SuiteVerdict.REFUSES
        return SuiteVerdict.PASSES

    @property
    def runnable(self) -> int:
        """Number of cases that a target must run; it must refuse the others."""
        return sum(not judged.case.is_refused for judged in self.cases)

    @property
    def compared(self) -> int:
        """Number of cases whose outputs were compared with the expected ones, bit by bit."""
        seen = (CaseResult.PASSES, CaseResult.DIFFERS)
        return sum(not judged.case.is_refused and judged.result in seen for judged in self.cases)

    def count(self, result: CaseResult) -> int:
        """Return the number of cases with that result."""
        return sum(judged.result == result for judged in self.cases)

    @property
    def failing(self) -> tuple[Judged, ...]:
        """The cases that fail."""
        return tuple(judged for judged in self.cases if judged.fails)


def judge(job: CaseFolder, archive: Archive, cases: Sequence[Case], ended: Mapping[str, str]) -> tuple[Judged, ...]:
    """Return a verdict for every case. `ended` describes how the target ended, by case."""
    return tuple(
        replace(_judge(job, archive, case, ended.get(case.id, "")), digest=case.digest, size=job.size(case))
        for case in cases
    )


def _judge(job: CaseFolder, archive: Archive, case: Case, how: str) -> Judged:
    refusal, left = job.refusal(case), job.leftovers(case)
    if refusal is not None and left:
        return Judged(case, CaseResult.MALFORMED, f"refused, but also left {left[0]}: {refusal}")
    if case.is_refused:
        if refusal is not None:
            return Judged(case, CaseResult.PASSES, refusal)
        if how or not left:
            return Judged(case, CaseResult.ENDED, how or "neither outputs nor a refusal")
        return Judged(case, CaseResult.ACCEPTED, case.aim)
    if refusal is not None:
        return Judged(case, CaseResult.REFUSED, refusal)
    like = [arrays(archive, sample) for sample in case.expected]
    if not job.is_done(case):
        return Judged(case, CaseResult.ENDED, how or "no outputs")
    found = []
    made = hashlib.sha256()
    for sample, (outputs, want) in enumerate(zip(job.outputs(case, like), like, strict=True)):
        for position, (one, other) in enumerate(zip(outputs, want, strict=True)):
            if isinstance(one, str):
                return Judged(case, CaseResult.MALFORMED, one, sample)
            made.update(digest(with_one_nan(one)).encode())
            d = difference(other, one, sample)
            if not d.same:
                found.append((sample, position, d))
    if not found:
        return Judged(case, CaseResult.PASSES, outputs=made.hexdigest()[:32])
    sample, _, d = found[0]
    judged = Judged(case, CaseResult.DIFFERS, _brief(d), sample, d, differences=tuple(found))
    return replace(judged, outputs=made.hexdigest()[:32])


def _brief(d: Difference) -> str:
    where = "" if d.first is None else f", first at {list(d.first.index)}: "
    values = "" if d.first is None else f"expected {d.first.expected}, got {d.first.got}"
    count = f"{d.differing:,} of {d.elements:,} elements differ"
    return f"{count}, by up to {d.largest} {d.unit}{where}{values}"
