"""The widths that accumulators need as a document: `schemas/overflow.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflq.inspection.overflow import Bound


def overflow_document(model: str, profile: str, bounds: Sequence[Bound], bits: int) -> dict[str, Any]:
    """Return the bounds of every accumulator as a document: `schemas/overflow.schema.json`."""
    return {
        "schema": "tflq/overflow/1",
        "model": model,
        "profile": profile,
        "bits": bits,
        "operators": [
            {
                "index": bound.index,
                "op": bound.op,
                "low": bound.low,
                "high": bound.high,
                "channel": bound.channel,
                "bits": bound.bits,
                "overflows": bound.bits > bits,
            }
            for bound in bounds
        ],
    }
