"""The report of `tflq prove --check`: whether a certificate holds for a model."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.face.report.blocks import Block, Brief, Listing, Report, Text, Verdict
from tflq.face.report.documents.certificate_check import CertificateCheckDocument
from tflq.face.report.documents.shared import model_document
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.prove.page import STYLES
from tflq.face.report.verbs.prove.report import claim_text, counts_text, profiles_text
from tflq.proof import Check


def check_report(check: Check) -> Report:
    """Build the report: the verdict, what a new proof does not repeat, and what the certificate covers."""
    return Report("prove", list(_blocks(check)))


def _blocks(check: Check) -> Iterator[Block]:
    path, proof = check.model.path or "model", check.proof
    if check.holds:
        text = "the certificate holds: every statement of it is proved again"
    else:
        text = f"the certificate is void: {counted(len(check.problems), 'statement')} not true of this model"
    yield Verdict(text, "good" if check.holds else "bad", subject=path)
    yield Listing(list(check.problems), "bad")
    if check.holds and proof is not None:
        summary = f"{profiles_text(proof)}: {counts_text(proof.counts)}; {claim_text(proof)}"
        yield Text(summary, STYLES[proof.word])
    yield Brief(next(iter(check.problems), "every statement is proved again"), "Next: .problems, .proof")


def check_document(check: Check) -> CertificateCheckDocument:
    """Return the document: `schemas/certificate-check.schema.json`."""
    return {
        "schema": "tflq/certificate-check/1",
        "model": model_document(check.model),
        "verdict": check.word,
        "problems": list(check.problems),
        "certificate": {"verdict": check.certificate.verdict, "profiles": list(check.certificate.profiles)},
    }
