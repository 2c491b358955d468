"""The report of `tflq doctor`: the machine, the runtimes, the self-test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from tflq.devices.conformance.doctor import Examination
from tflq.face.report.blocks import Block, Brief, Fact, Report, Table, Verdict
from tflq.face.report.documents.doctor import DoctorDocument
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.numbers import counted


def doctor_report(examination: Examination) -> Report:
    """Build the report of an examination."""
    return Report("doctor", list(_blocks(examination)))


def doctor_card(examination: Examination) -> Report:
    """Build the report of an examination for a console or a notebook."""
    there = [one.name for one in examination.runtimes if one.version]
    brief = Brief(f"runtimes: {', '.join(there) or 'none'}", "Next: .runtimes, each with .profile")
    return Report("doctor", [*_blocks(examination), brief])


def _blocks(examination: Examination) -> Iterator[Block]:
    versions = f"tflq {examination.tflq}, Python {examination.python}, NumPy {examination.numpy}"
    yield Fact(f"{versions}, numba {examination.numba}, {examination.platform}")
    came = f"; {examination.shipped} came with tflq" if examination.shipped else "; none came with tflq"
    yield Fact(f"integer products by: {examination.kernels}; machine code in {examination.machine_code}{came}")
    rows = [(r.name, r.version or "not there", r.profile, r.reason) for r in examination.runtimes]
    yield Table([("runtime", "<"), ("version", "<"), ("profile", "<"), ("", "<")], rows)
    yield _self_test(examination)


def _self_test(examination: Examination) -> Verdict:
    if examination.failing:
        return Verdict(examination.failing, "bad", subject="self-test")
    if not examination.tested:
        return Verdict("left out, as inputs are drawn otherwise here", "warning", subject="self-test")
    return Verdict(f"{counted(examination.tested, 'case')} as recorded from LiteRT 2.3", "good", subject="self-test")


def doctor_document(examination: Examination) -> DoctorDocument:
    """Return the document: `schemas/doctor.schema.json`."""
    facts = fields_of(examination)
    test = {"cases": facts.pop("tested"), "problem": facts.pop("failing") or None}
    runtimes = [{**r, "version": r["version"] or None, "profile": r["profile"] or None} for r in facts.pop("runtimes")]
    return cast(DoctorDocument, {"schema": "tflq/doctor/1", **facts, "runtimes": runtimes, "self_test": test})
