"""Where the results of failing cases differ for which no arithmetic is known: codes, windows, axes, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.devices.conformance.causes import observed_case
from tflq.devices.conformance.jobs import Job
from tflq.devices.conformance.judging import Judged, Result
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import case_of, defect_after, defect_before
from tflq.engine.profiles import Profile, by_name
from tflq.errors import TflqError
from tflq.model.storage.archive import Archive

#: Cases of an operator and types that are looked at.
LOOKED_AT = 24


def add_places(job: Job, archive: Archive, cases: Sequence[Judged], profile: str) -> tuple[Judged, ...]:
    """Add the place of the differences to cases without a cause, at most 24 of an operator and types.

    No verdict depends on it: a fault while it is sought leaves it open.
    """
    known = by_name(profile)
    counts: dict[tuple[str, str], int] = {}
    found = []
    for one in cases:
        kernel = one.case.op, one.case.types
        if one.result == Result.DIFFERS and not one.causes and counts.get(kernel, 0) < LOOKED_AT:
            counts[kernel] = counts.get(kernel, 0) + 1
            one = replace(one, place=_place(job, archive, one, known))
        found.append(one)
    return tuple(found)


def _place(job: Job, archive: Archive, one: Judged, profile: Profile) -> str:
    try:
        observed = observed_case(job, archive, one)
        case = case_of(observed.model, observed.dumps, 0, profile)
        defect = None if case is None else defect_before(case, is_chosen=True) or defect_after(case)
    except (TflqError, ArithmeticError, LookupError, ValueError):
        return ""
    return "" if defect is None or defect.certainty == Certainty.NONE else defect.name
