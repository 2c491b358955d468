"""The profiles that a whole dump fits as a document: `schemas/fit.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflq.report.fit.lines import best_of, unexplained


def fit_document(ops: Sequence[str], matrix: Mapping[str, tuple[tuple[int, int] | None, ...]]) -> dict[str, Any]:
    """Return what every profile explains of a dump as a document: `schemas/fit.schema.json`."""
    best = best_of(matrix)
    return {
        "schema": "tflq/fit/1",
        "best": best,
        "unexplained": unexplained(matrix[best]),
        "operators": list(ops),
        "matrix": {name: [None if c is None else list(c) for c in row] for name, row in matrix.items()},
    }
