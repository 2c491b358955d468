"""The differences of two models as a document: `schemas/diff.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.inspection.model_diff import ModelDiff


def diff_document(model_diff: ModelDiff) -> dict[str, Any]:
    """Return the differences of two models as a document."""
    return {
        "schema": "tflq/diff/1",
        "first": asdict(model_diff.first),
        "second": asdict(model_diff.second),
        "changes": [asdict(change) for change in model_diff.changes],
    }
