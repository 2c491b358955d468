"""The differences of two models as a document: `schemas/diff.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.inspection.model_diff import ModelDiff


def diff_document(found: ModelDiff) -> dict[str, Any]:
    """Return the differences of two models as a document."""
    return {
        "schema": "tflq/diff/1",
        "first": asdict(found.first),
        "second": asdict(found.second),
        "changes": [asdict(change) for change in found.changes],
    }
