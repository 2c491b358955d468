"""Verdicts of a suite as a document: `schemas/conform.schema.json`."""

from __future__ import annotations

from typing import cast

from tflq.devices.conformance.causes import explained_groups
from tflq.devices.conformance.joint import joint_causes, refusals
from tflq.devices.conformance.judging import Judged, Result, Verdicts
from tflq.face.report.documents.conform import CaseDocument, ConformDocument, CountDocument
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.issues import mark_of_case
from tflq.face.report.joint import cause_document, nearest_document


def verdict_document(verdicts: Verdicts) -> ConformDocument:
    """Return every case with its result; what passes has no reason."""
    groups, failing = explained_groups(verdicts.cases)
    return {
        "schema": "tflq/conform/1",
        "target": verdicts.target,
        "profile": verdicts.profile,
        "level": verdicts.level,
        "verdict": verdicts.verdict,
        "suite": verdicts.suite,
        "shard": list(verdicts.shard),
        "made": {"seed": verdicts.seed, "version": verdicts.version},
        "left": verdicts.left,
        "compared": {"cases": verdicts.compared, "of": verdicts.runnable},
        "max_refused": verdicts.most_refused,
        "endings": list(verdicts.endings),
        "explained": {"groups": groups, "of": failing},
        "counts": cast(CountDocument, {result.value: verdicts.count(result) for result in Result}),
        "joint": [cause_document(cause) for cause in joint_causes(verdicts.cases, verdicts.joint)],
        "nearest": nearest_document(verdicts.joint),
        "joint_fault": verdicts.joint.fault or None,
        "refusals": [
            {"reason": one.reason, "cases": len(one.cases), "operators": list(one.operators)}
            for one in refusals(verdicts.cases)
        ],
        "cases": [case_document(judged) for judged in verdicts.cases],
    }


def case_document(judged: Judged) -> CaseDocument:
    """Return a case with its result, and how the outputs differ that were compared."""
    case, difference = judged.case, judged.difference
    return {
        "id": case.id,
        "op": case.op,
        "types": case.types,
        "level": case.level,
        "aim": case.aim,
        "tells": list(case.tells),
        "must_be_refused": case.is_refused,
        "result": judged.result,
        "reason": judged.reason or None,
        "sample": judged.sample,
        "difference": None
        if difference is None
        else {
            "elements": difference.elements,
            "differing": difference.differing,
            "unit": difference.unit,
            "largest": difference.largest,
            "first": None if difference.first is None else fields_of(difference.first),
        },
        "causes": list(judged.causes),
        "is_explained": judged.is_explained,
        "fault": judged.fault or None,
        "place": judged.place or None,
        "mark": mark_of_case(judged),
        "digest": judged.digest,
        "outputs": judged.outputs or None,
        "size": judged.size,
    }
