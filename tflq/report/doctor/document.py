"""An examination as a document: `schemas/doctor.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.conformance.doctor import Examination

SCHEMA = "tflq/doctor/1"


def doctor_document(examination: Examination) -> dict[str, Any]:
    """Return everything that was found."""
    facts = asdict(examination)
    test = {"cases": facts.pop("tested"), "problem": facts.pop("failing") or None}
    runtimes = [{**r, "version": r["version"] or None, "profile": r["profile"] or None} for r in facts.pop("runtimes")]
    return {"schema": SCHEMA, **facts, "runtimes": runtimes, "self_test": test}
