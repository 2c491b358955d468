"""An answer as a document: `schemas/why.schema.json`."""

from __future__ import annotations

from typing import Any

from tflq.diagnosis.why import Answer
from tflq.report.verbs.explain.document import explain_document
from tflq.report.verbs.why.report import reduced_name
from tflq.report.verbs.why.texts import advice, cause_names, certainty_text, headline
from tflq.statements import facts_of


def why_document(answer: Answer, model: str, evidence: str) -> dict[str, Any]:
    """Return the answer as a document."""
    mistake, weight, findings = answer.mistake, answer.weight, answer.findings
    located = None if findings is None else findings.explained or findings.first
    return {
        "schema": "tflq/why/1",
        "model": model,
        "evidence": evidence,
        "samples": answer.samples,
        "verdict": answer.verdict.value,
        "answer": headline(answer),
        "fault": answer.fault.name.lower(),
        "base": answer.base,
        "nearest": answer.nearest,
        "operator": None if located is None else {"index": located.index, "op": located.op},
        "causes": [mistake.name, *mistake.also] if mistake is not None else cause_names(answer),
        "certainty": certainty_text(answer),
        "mistake": None
        if mistake is None
        else {
            "side": mistake.side.value,
            "certain": mistake.is_certain,
            "before": mistake.before,
            "after": mistake.after,
            "elements": mistake.elements,
        },
        "effect": None if weight is None else {"flipped": weight.flipped, "rows": weight.rows, "change": weight.effect},
        "advice": advice(answer, model, evidence),
        "reduced": reduced_name(answer, model) or None,
        "runtimes": None
        if answer.runtimes is None
        else {"groups": [list(group) for group in answer.runtimes.groups], "failed": dict(answer.runtimes.failed)},
        "warnings": list(answer.warnings),
        "facts": facts_of(answer.warnings),
        "findings": None if findings is None else explain_document(model, evidence, findings),
    }
