"""An answer as a document: `schemas/why.schema.json`."""

from __future__ import annotations

from tflq.diagnosis.why import Answer
from tflq.face.report.documents.why import WhyDocument
from tflq.face.report.verbs.explain.document import explain_document
from tflq.face.report.verbs.why.asked import Asked
from tflq.face.report.verbs.why.report import reduced_name
from tflq.face.report.verbs.why.texts import (
    advice,
    cause_names,
    certainty_text,
    foreign_names,
    headline,
    notes,
    samples_statement,
)
from tflq.statements import facts_of


def why_document(answer: Answer, asked: Asked) -> WhyDocument:
    """Return the answer as a document."""
    mistake, weight, findings, located = answer.mistake, answer.weight, answer.findings, answer.located
    optional = (answer.breach, samples_statement(answer))
    stated = [*(one for one in optional if one is not None), *notes(answer)]
    return {
        "schema": "tflq/why/1",
        "model": asked.model,
        "evidence": asked.evidence,
        "samples": answer.samples,
        "verdict": answer.verdict.value,
        "answer": headline(answer),
        "fault": answer.fault.name.lower(),
        "base": answer.base,
        "nearest": answer.nearest,
        "operator": None if located is None else {"index": located.index, "op": located.op},
        "causes": [mistake.name, *mistake.also] if mistake is not None else cause_names(answer),
        "certainty": answer.certainty,
        "evidence_for_it": certainty_text(answer),
        "fitting": [] if answer.fit is None else list(answer.fit.fitting),
        "foreign": foreign_names(answer),
        "breach": answer.breach,
        "mistake": None
        if mistake is None
        else {
            "side": mistake.side,
            "certain": mistake.is_certain,
            "before": mistake.before,
            "after": mistake.after,
            "elements": mistake.elements,
        },
        "effect": None if weight is None else {"flipped": weight.flipped, "rows": weight.rows, "change": weight.effect},
        "advice": advice(answer, asked),
        "reduced": reduced_name(answer, asked) or None,
        "runtimes": None
        if answer.runtimes is None
        else {"groups": [list(group) for group in answer.runtimes.groups], "failed": dict(answer.runtimes.failed)},
        "warnings": notes(answer),
        "facts": facts_of(stated),
        "findings": None if findings is None else explain_document(asked.model, asked.dump, findings, asked.options),
    }
