"""Findings about a model as a document: `schemas/lint.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.linting import Lint

SCHEMA = "tflq/lint/1"


def lint_document(result: Lint, fixed_file: str | None = None, corrected: int = 0) -> dict[str, Any]:
    """Return the findings about a model as a document."""
    return {
        "schema": SCHEMA,
        "model": asdict(result.facts),
        "target": result.target or None,
        "findings": [{**asdict(f), "level": f.level.value} for f in result.findings],
        "fixed": None if fixed_file is None else {"file": fixed_file, "corrected": corrected},
    }
