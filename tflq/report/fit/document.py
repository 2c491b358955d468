"""What every profile explains of a dump as a document: `schemas/fit.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.diagnosis.compatibility import compatible
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.profile_fit import Fit, FitVerdict
from tflq.profiles import by_name
from tflq.report.explain.document import discrimination_document


def fit_document(found: Fit, told: Discrimination | None = None) -> dict[str, Any]:
    """Return the fit as a document. `best` is null where no profile explains any operator."""
    none = found.verdict in (FitVerdict.NONE, FitVerdict.NOTHING)
    return {
        "schema": "tflq/fit/1",
        "verdict": found.verdict.value,
        "base": found.base,
        "best": None if none else found.best,
        "fitting": list(found.fitting),
        "ties": [] if none else list(found.ties),
        "compatible": [asdict(one) for one in compatible(map(by_name, found.fitting))],
        "mix": {op: list(names) for op, names in found.mix.items()},
        "parts": [{"profile": name, "operators": list(ops)} for name, ops in found.parts.items()],
        "unexplained": list(found.compared if none else found.unexplained),
        "unknown": list(found.unknown),
        "operators": list(found.operators),
        "failures": {str(index): reason for index, reason in found.failures.items()},
        "matrix": {name: [None if c is None else list(c) for c in row] for name, row in found.matrix.items()},
        "discrimination": None if told is None else discrimination_document(told),
    }
