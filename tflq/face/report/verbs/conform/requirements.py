"""The report of `tflq conform report`: levels, requirements that fail or have no case, and exclusions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tflq.devices.conformance.requirements import Claim
from tflq.escaping import shown
from tflq.face.report.blocks import Block, Fact, Report, Section, Table, Verdict
from tflq.face.report.documents.claim import ClaimDocument
from tflq.face.report.documents.shared import fields_of

_LEVELS = (("level", "<"), ("met", "<"), ("pass", ">"), ("fail", ">"), ("no case", ">"), ("excluded", ">"))
_LISTED = 20


def requirements_report(found: Claim) -> Report:
    """Build the report. Its verdict is the highest level that is met."""
    return Report("conform", list(_blocks(found)), title=f"{shown(found.target)}: conformance")


def _blocks(found: Claim) -> Iterator[Block]:
    rows = [
        (one.level, "yes" if one.is_met else "no", *(f"{len(some):,}" for some in _parts(one))) for one in found.levels
    ]
    yield Section("levels", f"Levels, version {found.version}", [Table(_LEVELS, rows)])
    failed = {name: one.level for one in reversed(found.levels) for name in one.failed}
    if failed:
        listed = Table((("requirement that fails", "<"), ("level", "<")), sorted(failed.items()), most=_LISTED)
        yield Section("failed", "Requirements that fail", [listed])
    if found.exclusions:
        entries = [(shown(e.requirement), shown(e.reason), e.date) for e in found.exclusions]
        table = Table((("excluded", "<"), ("reason", "<"), ("since", "<")), entries)
        yield Section("excluded", "What the claim leaves out", [table])
    for pattern in found.unused:
        yield Fact(f"the exclusion {shown(pattern)} matches no requirement", "warning")
    kept = " with exclusions" if any(one.excluded for one in found.levels if one.is_met) else ""
    text = f"meets {found.met}{kept}" if found.met else "meets no level"
    yield Verdict(f"{text}, levels of version {found.version}", "good" if found.met else "bad", "", shown(found.target))


def _parts(one: Any) -> Sequence[Sequence[str]]:
    return one.passed, one.failed, one.without_case, one.excluded


def requirements_document(found: Claim) -> ClaimDocument:
    """Return the document: `schemas/claim.schema.json`."""
    return {
        "schema": "tflq/claim/1",
        "target": found.target,
        "levels_version": found.version,
        "met": found.met or None,
        "levels": [fields_of(one, is_met=one.is_met) for one in found.levels],
        "exclusions": [fields_of(one) for one in found.exclusions],
        "unused": list(found.unused),
    }
