"""A learned device as a JSON document (`schemas/learn.schema.json`)."""

from __future__ import annotations

from typing import cast

from tflq.devices.learning.findings import Findings
from tflq.devices.learning.profile import provenance
from tflq.devices.learning.words import formula, requantizer_in_words, work_out
from tflq.engine.numerics.requantizer import stated
from tflq.face.report.documents.learn import LearnDocument
from tflq.face.report.documents.shared import fields_of


def learn_document(found: Findings, profile: str) -> LearnDocument:
    """Return the findings as JSON values; `profile` is the file that was written."""
    document = {
        "schema": "tflq/learn/1",
        "output": profile,
        "seconds": round(found.seconds, 3),
        "reason": found.reason,
        **provenance(found),
        "requantizers": [
            {
                "op": one.op,
                "type": one.kind,
                "left": len(one.points),
                "tried": one.tried,
                "rounds": one.rounds,
                "accumulators": one.accumulators,
                "reason": one.reason,
                "fields": stated(one.points[0]) if one.points else None,
                "is": requantizer_in_words(one.points[0]) if one.points else "",
                "formula": formula(one.points[0]) if one.points else "",
                "element": [fields_of(step) for step in work_out(one)],
            }
            for one in found.requantizers
        ],
    }
    return cast(LearnDocument, document)
