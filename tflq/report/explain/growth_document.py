"""How differences grow behind the operators that made them, as part of a document."""

from __future__ import annotations

from typing import Any

from tflq.diagnosis.amplification import Amplification, Spread


def growth_document(growth: Amplification) -> dict[str, Any]:
    """All of it."""
    return {
        "operator": growth.index,
        "reason": growth.reason,
        "spreads": [_spread(s) for s in growth.spreads],
        "choices": [
            {
                "tensor": c.tensor,
                "rows": c.rows,
                "flipped": c.flipped,
                "first": None if c.first is None else dict(zip(("row", "before", "after"), c.first, strict=True)),
            }
            for c in growth.choices
        ],
    }


def outcome_document(growth: Amplification) -> dict[str, Any]:
    """A row of the table of several."""
    return {
        "operator": growth.index,
        "reason": growth.reason,
        "later": len(growth.spreads),
        "reached": len(growth.reached),
        "farthest": None if growth.farthest is None else _spread(growth.farthest),
        "flips": any(c.flipped for c in growth.choices),
    }


def _spread(s: Spread) -> dict[str, Any]:
    return {
        "index": s.index,
        "op": s.op,
        "elements": s.difference.elements,
        "differing": s.difference.differing,
        "largest": s.difference.largest,
        "unit": s.difference.unit,
        "mean": s.difference.bias,
    }
