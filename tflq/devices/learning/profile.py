"""The profile file of a device: rows that execute what was learned, and where it comes from."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import yaml

from tflq.devices.learning.findings import Findings, Learned, State
from tflq.devices.learning.words import describe, finding
from tflq.engine.profiles.building import NOT_MEASURED
from tflq.engine.profiles.file import SCHEMA

#: Other forms that are named beside the first.
_NAMED = 6


def document_of(found: Findings) -> dict[str, Any]:
    """Return the document of the profile. It refuses operators that are not known."""
    return {
        "schema": SCHEMA,
        "base": "litert-ref",
        "about": f"learned from {found.target}",
        "source": {"package": "learned", "version": found.version or "unknown", "resolver": "", "cpu": "unknown"},
        "figures": NOT_MEASURED,
        "others": "refused",
        "rows": [row for one in found.operators for row in one.rows()],
        "learned": provenance(found),
    }


def provenance(found: Findings) -> dict[str, Any]:
    """Return where a profile comes from: the target, what it was asked, and the state of each operator."""
    tally = found.tally
    return {
        "target": found.target,
        "version": found.version,
        "date": found.date,
        "tflq": version("tflq"),
        "complete": not found.is_partial,
        "questions": tally.questions,
        "samples": tally.samples,
        "elements": tally.elements,
        "calls": tally.calls,
        "refused": tally.refused,
        "failed": tally.failed,
        "operators": [_operator(one) for one in found.operators],
    }


def _operator(one: Learned) -> dict[str, Any]:
    stated: dict[str, Any] = {
        "op": one.subject.op,
        "types": one.subject.types,
        "state": one.state.value,
        "is": finding(one),
        "questions": one.asked,
        "fresh": one.fresh,
        "fresh_elements": one.fresh_elements,
        "geometries": one.covered,
        "refused": one.refused,
        "tried": one.tried,
    }
    if one.coverage is not None:
        stated["coverage"] = str(one.coverage)
    if one.also:
        stated["not_told_apart"] = [describe(form) for form in one.also[:_NAMED]]
        stated["not_told_apart_count"] = len(one.also)
    if one.state is State.UNKNOWN:
        stated["reproduced"] = {"elements": one.share[1], "same": one.share[0]}
    if one.note and one.note != stated["is"]:
        stated["note"] = one.note
    return stated


def text_of(found: Findings) -> str:
    """Return the YAML file of the profile."""
    return yaml.safe_dump(document_of(found), sort_keys=False, allow_unicode=True, width=110)
