"""A recording as a document: `schemas/record.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.api.subject import ModelFacts
from tflq.report.documents import RECORD, model_document, runtime_document
from tflq.verification.golden import Golden


def record_document(model: ModelFacts, golden: Golden, path: str) -> dict[str, Any]:
    """A recording: `schemas/record.schema.json`."""
    return {
        "schema": RECORD,
        "model": model_document(model),
        "golden": path,
        "runtime": runtime_document(golden.runtime),
        "inputs": asdict(golden.inputs),
        "samples": len(golden.observations),
        "tensors": golden.tensors,
        "notes": list(golden.notes),
    }
