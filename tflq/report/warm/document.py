"""What was compiled, as a document: `schemas/warm.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.api.warming import Warmed

SCHEMA = "tflq/warm/1"


def warm_document(warmed: Warmed) -> dict[str, Any]:
    """Return everything that is known of it."""
    return {"schema": SCHEMA, **asdict(warmed)}
