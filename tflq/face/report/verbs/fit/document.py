"""The operators of a dump that each profile reproduces, as a document: `schemas/fit.schema.json`."""

from __future__ import annotations

from tflq.diagnosis.compatibility import compatible
from tflq.diagnosis.profile_fit import Fit
from tflq.engine.profiles import by_name
from tflq.face.report.documents.fit import FitDocument
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.verbs.explain.document import discrimination_document


def fit_document(fit: Fit) -> FitDocument:
    """Return the fit as a document. `best` is null if no profile explains any operator, or if none can be named."""
    none = not fit.names_best
    return {
        "schema": "tflq/fit/1",
        "verdict": fit.verdict,
        "base": fit.base,
        "best": None if none else fit.best,
        "compared": {
            "operators": len(fit.compared),
            "of": len(fit.operators),
            "elements": fit.elements,
            "telling": fit.telling,
            "informative": fit.informative,
            "needed": fit.needed,
        },
        "foreign": list(fit.foreign),
        "fitting": list(fit.fitting),
        "ties": [] if none else list(fit.ties),
        "compatible": [fields_of(one) for one in compatible(map(by_name, fit.fitting))],
        "mix": {op: list(names) for op, names in fit.mix.items()},
        "parts": [{"profile": name, "operators": list(ops)} for name, ops in fit.parts.items()],
        "unexplained": list(fit.compared if none else fit.unexplained),
        "unknown": list(fit.unknown),
        "operators": list(fit.operators),
        "failures": {str(index): reason for index, reason in fit.failures.items()},
        "matrix": {name: [None if c is None else list(c) for c in row] for name, row in fit.matrix.items()},
        "discrimination": None if fit.discrimination is None else discrimination_document(fit.discrimination),
    }
