"""The findings about a dump as a document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.findings import Findings
from tflq.report.documents import difference_document
from tflq.report.explain.element_document import element_document
from tflq.report.explain.growth_document import growth_document, outcome_document
from tflq.report.explain.lines import PARTIAL, next_steps
from tflq.verification.results import Located


def explain_document(model: str, dump: str, findings: Findings, inputs: str | None = None) -> dict[str, Any]:
    """The findings: `schemas/explain.schema.json`."""
    return {
        "schema": "tflq/explain/1",
        "model": model,
        "dump": dump,
        "profile": findings.profile,
        "mode": findings.mode.value,
        "verdict": findings.verdict.value,
        "first_divergent": None if findings.first is None else findings.first.index,
        "unknown": list(findings.unknown),
        "sample": findings.sample,
        "faults": list(findings.faults),
        "operators": [_operator(o) for o in findings.operators],
        "explanation": None if findings.explanation is None else _explanation(findings.explanation),
        "discrimination": None if findings.discrimination is None else discrimination_document(findings.discrimination),
        "element": None if findings.element is None else element_document(findings.element),
        "growth": None if findings.amplification is None else growth_document(findings.amplification),
        "growths": [outcome_document(growth) for growth in findings.growths],
        "next": list(next_steps(model, dump, findings, inputs)),
    }


def _operator(o: Located) -> dict[str, Any]:
    tensors = [{"index": t, **difference_document(d), "problem": d.problem} for t, d in o.differences.items()]
    return {"index": o.index, "op": o.op, "reason": o.reason, "assumed": list(o.assumed), "tensors": tensors}


def _explanation(e: Explanation) -> dict[str, Any]:
    return {
        "index": e.index,
        "profile": e.profile,
        "verdict": e.verdict.value,
        "certainty": e.certainty.value,
        "doubts": list(e.doubts),
        "evidence": {"telling": e.evidence.telling, "stimuli": e.evidence.stimuli, "bits": e.evidence.bits},
        "places": list(e.places),
        "matching": e.matching,
        "elements": e.elements,
        "exact": [_cause(h) for h in e.exact],
        "alike": list(e.alike),
        "beyond": list(e.beyond),
        "faults": [asdict(fault) for fault in e.faults],
        "less_likely": [_cause(h) for h in e.less_likely],
        "possible": [_cause(h) for h in e.possible],
        "only_here": [_cause(h) for h in e.only_here],
        "partial": [_cause(h) for h in e.causes if not h.exact][:PARTIAL],
    }


def discrimination_document(discrimination: Discrimination) -> dict[str, Any]:
    """Return the groups of causes that new inputs tell apart, and whose inputs these are."""
    return {
        "operator": discrimination.index,
        "inputs_of": "model" if discrimination.of_model else "operator",
        "samples": len(discrimination.trials),
        "causes": list(discrimination.causes),
        "groups": [list(group) for group in discrimination.groups],
    }


def _cause(h: Cause) -> dict[str, Any]:
    return {
        "kind": h.kind.value,
        "name": h.name,
        "matching": h.matching,
        "elements": h.elements,
        "also": list(h.also),
        "proved": h.is_proved,
        "not_at": list(h.not_at),
        "also_at": list(h.also_at),
    }
