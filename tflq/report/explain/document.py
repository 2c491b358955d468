"""What a dump was found to be, as a document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.explanation import Explanation, Hypothesis
from tflq.diagnosis.findings import Findings
from tflq.diagnosis.localization import Located
from tflq.report.explain.element_document import element_document
from tflq.report.explain.growth_document import growth_document, outcome_document
from tflq.report.explain.lines import PARTIAL, next_steps


def explain_document(model: str, dump: str, found: Findings, inputs: str | None = None) -> dict[str, Any]:
    """The findings: `schemas/explain.schema.json`."""
    return {
        "schema": "tflq/explain/1",
        "model": model,
        "dump": dump,
        "profile": found.profile,
        "mode": found.mode,
        "verdict": found.verdict,
        "first_divergent": None if found.first is None else found.first.index,
        "unknown": list(found.unknown),
        "sample": found.sample,
        "operators": [_operator(o) for o in found.operators],
        "explanation": None if found.explanation is None else _explanation(found.explanation),
        "discrimination": None if found.discrimination is None else _discrimination(found.discrimination),
        "element": None if found.element is None else element_document(found.element),
        "growth": None if found.amplification is None else growth_document(found.amplification),
        "growths": [outcome_document(growth) for growth in found.growths],
        "next": list(next_steps(model, dump, found, inputs)),
    }


def _operator(o: Located) -> dict[str, Any]:
    tensors = [{"index": t, **asdict(d)} for t, d in o.differences.items()]
    return {"index": o.index, "op": o.op, "reason": o.reason, "assumed": list(o.assumed), "tensors": tensors}


def _explanation(e: Explanation) -> dict[str, Any]:
    return {
        "index": e.index,
        "profile": e.profile,
        "verdict": e.verdict,
        "places": list(e.places),
        "matching": e.matching,
        "elements": e.elements,
        "exact": [_hypothesis(h) for h in e.exact],
        "partial": [_hypothesis(h) for h in e.hypotheses if not h.exact][:PARTIAL],
    }


def _discrimination(told: Discrimination) -> dict[str, Any]:
    return {
        "operator": told.index,
        "inputs_of": "model" if told.of_model else "operator",
        "samples": len(told.trials),
        "causes": list(told.causes),
        "groups": [list(group) for group in told.groups],
    }


def _hypothesis(h: Hypothesis) -> dict[str, Any]:
    return {**asdict(h), "also": list(h.also)}
