"""Evidence for joint causes: the cases of a suite that a target ran, or the operators of a device's dump."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.comparison.verification.dump import Dump
from tflq.devices.conformance.causes import known_samples, observed_case
from tflq.devices.conformance.jobs import Job
from tflq.devices.conformance.judging import Judged, Result
from tflq.devices.learning.joint import name_jointly
from tflq.devices.learning.scored_forms import Observed
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.findings import Findings
from tflq.diagnosis.joint import NONE, Joint
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.siblings import Known
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError
from tflq.model.ir import Model
from tflq.model.storage.archive import Archive
from tflq.progress import Progress, silent

#: Cases of one kernel that are read.
_READ = 160
_COMPARED = (Result.PASSES, Result.DIFFERS)


def causes_of_suite(
    job: Job, archive: Archive, judged: Sequence[Judged], profile: str, tell: Progress = silent
) -> Joint:
    """Return the causes of a target's failing cases. An error is noted in the result: no verdict depends on it."""
    try:
        return name_jointly(_cases(job, archive, judged, by_name(profile)), tell)
    except Exception as error:
        return Joint(fault=f"{type(error).__name__}: {error}")


def _cases(job: Job, archive: Archive, judged: Sequence[Judged], profile: Profile) -> Iterator[Observed]:
    failing = {(one.case.op, one.case.types) for one in judged if one.result == Result.DIFFERS}
    read: dict[tuple[str, str], int] = {}
    for one in sorted(judged, key=lambda one: one.result != Result.DIFFERS):
        kernel = one.case.op, one.case.types
        if one.case.is_refused or one.result not in _COMPARED or kernel not in failing:
            continue
        read[kernel] = read.get(kernel, 0) + 1
        if read[kernel] <= _READ:
            known = tuple(known_samples(observed_case(job, archive, one), profile))
            if len(known) == len(one.case.samples):
                yield Observed(one.case.id, known)


def causes_of_dump(model: Model, samples: Sequence[Dump], profile: Profile, findings: Findings) -> Joint:
    """Return the joint causes of a dump's operators; none unless one differs that nothing known reproduces."""
    explanation = findings.explanation
    if findings.first is None or explanation is None or explanation.assumed:
        return NONE
    if explanation.exact or (explanation.is_a_defect and explanation.certainty != Certainty.NONE):
        return NONE
    try:
        return name_jointly(_operators(model, samples, profile, findings))
    except Exception as error:
        return Joint(fault=f"{type(error).__name__}: {error}")


def _operators(model: Model, samples: Sequence[Dump], profile: Profile, findings: Findings) -> Iterator[Observed]:
    codes = {o.op for o in findings.differing}
    for located in findings.operators:
        if located.op in codes and located.differences and not located.assumed:
            known = []
            for dump in samples:
                try:
                    known.append(Known(operator_alone(model, dump, located.index, profile), profile))
                except TflqError:
                    break
            if known and len(known) == len(samples):
                yield Observed(str(located.index), tuple(known))
