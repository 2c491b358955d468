"""Verdicts of a suite as a document: `schemas/conform.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.conformance.judging import Judged, Result, Verdicts

SCHEMA = "tflq/conform/1"


def verdict_document(verdicts: Verdicts) -> dict[str, Any]:
    """Return every case with its result; what passes has no reason."""
    return {
        "schema": SCHEMA,
        "target": verdicts.target,
        "profile": verdicts.profile,
        "level": verdicts.level,
        "counts": {result.value: verdicts.count(result) for result in Result},
        "cases": [_case(judged) for judged in verdicts.cases],
    }


def _case(judged: Judged) -> dict[str, Any]:
    case, found = judged.case, judged.difference
    return {
        "id": case.id,
        "op": case.op,
        "types": case.types,
        "level": case.level,
        "aim": case.aim,
        "tells": list(case.tells),
        "result": judged.result.value,
        "reason": judged.reason or None,
        "sample": judged.sample,
        "difference": None
        if found is None
        else {
            "elements": found.elements,
            "differing": found.differing,
            "unit": found.unit,
            "largest": found.largest,
            "first": None if found.first is None else asdict(found.first),
        },
        "causes": list(judged.causes),
    }
