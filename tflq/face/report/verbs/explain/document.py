"""A dump's findings, and an element worked out, as documents."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.comparison.verification.results import InputFacts, Located
from tflq.diagnosis.amplification import Amplification, Spread
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.element import ElementTrace
from tflq.diagnosis.element.steps import Read
from tflq.diagnosis.faults import Defect
from tflq.diagnosis.findings import Findings, Worked
from tflq.face.report.documents.element import ElementDocument, ReadDocument, TraceDocument, WorkedDocument
from tflq.face.report.documents.explain import (
    CauseDocument,
    DefectDocument,
    ExplainDocument,
    ExplainGrowthDocument,
    ExplanationDocument,
    GrowthDocument,
    OperatorDocument,
    SpreadDocument,
    TensorDifferenceDocument,
)
from tflq.face.report.documents.shared import DiscriminationDocument, difference_document, fields_of
from tflq.face.report.joint import cause_document, nearest_document
from tflq.face.report.verbs.explain.texts import PARTIAL, next_steps, place_texts


def explain_document(model: str, dump: str, findings: Findings, options: Sequence[str] = ()) -> ExplainDocument:
    """Return the document of a dump's findings: `schemas/explain.schema.json`.

    With several signatures it is that of the gravest, and `signatures` holds those of all.
    """
    every = [_document(model, dump, one, options) for one in findings.signatures]
    return {**_document(model, dump, findings, options), "signatures": every}


def _document(model: str, dump: str, findings: Findings, options: Sequence[str]) -> ExplainDocument:
    return {
        "schema": "tflq/explain/1",
        "signature": findings.signature or None,
        "model": model,
        "dump": dump,
        "profile": findings.profile,
        "mode": findings.mode,
        "verdict": findings.verdict.value,
        "first_divergent": _first(findings),
        "unknown": list(findings.unknown),
        "sample": findings.sample,
        "faults": list(findings.faults),
        "noise": [o.index for o in findings.noise],
        "operators": [_operator(o) for o in findings.operators],
        "explanation": None if findings.explanation is None else _explanation(findings.explanation),
        "joint": [cause_document(cause) for cause in findings.joint.causes],
        "nearest": nearest_document(findings.joint),
        "discrimination": None if findings.discrimination is None else discrimination_document(findings.discrimination),
        "element": None if findings.element is None else _element(findings.element),
        "growth": None if findings.amplification is None else _growth(findings.amplification),
        "growths": [_outcome(growth) for growth in findings.growths],
        "next": list(next_steps(model, dump, findings, options)),
    }


def _first(findings: Findings) -> int | None:
    """Return the differing operator that is explained, else the first in order of execution."""
    explained = findings.explained
    if explained is not None and explained.differs:
        return explained.index
    return None if findings.first is None else findings.first.index


def _operator(o: Located) -> OperatorDocument:
    tensors: list[TensorDifferenceDocument] = [
        {"index": t, **difference_document(d), "problem": d.problem} for t, d in o.differences.items()
    ]
    return {"index": o.index, "op": o.op, "reason": o.reason, "assumed": list(o.assumed), "tensors": tensors}


def _explanation(e: Explanation) -> ExplanationDocument:
    return {
        "index": e.index,
        "profile": e.profile,
        "verdict": e.verdict,
        "certainty": e.certainty,
        "doubts": list(e.doubts),
        "evidence": {"telling": e.evidence.telling, "stimuli": e.evidence.stimuli, "bits": e.evidence.bits},
        "places": list(place_texts(e.places)),
        "matching": e.matching,
        "elements": e.elements,
        "exact": [_cause(h) for h in e.exact],
        "defect": None if e.defect is None else _defect(e.defect),
        "alike": list(e.alike),
        "beyond": list(e.beyond),
        "faults": [fields_of(fault) for fault in e.faults],
        "less_likely": [_cause(h) for h in e.less_likely],
        "possible": [_cause(h) for h in e.possible],
        "only_here": [_cause(h) for h in e.only_here],
        "partial": [_cause(h) for h in e.causes if not h.exact][:PARTIAL],
    }


def _defect(defect: Defect) -> DefectDocument:
    """Return a fault that is no arithmetic."""
    return {
        "kind": defect.kind,
        "name": defect.name,
        "certainty": defect.certainty,
        "tensor": defect.tensor,
        "place": defect.place,
        "cleared": defect.cleared,
        "tell": defect.tell,
    }


def discrimination_document(discrimination: Discrimination) -> DiscriminationDocument:
    """Return the groups of causes that new inputs distinguish, and the owner of these inputs."""
    return {
        "operator": discrimination.index,
        "inputs_of": "model" if discrimination.of_model else "operator",
        "samples": len(discrimination.trials),
        "causes": list(discrimination.causes),
        "groups": [list(group) for group in discrimination.groups],
    }


def _cause(h: Cause) -> CauseDocument:
    return {
        "kind": h.kind,
        "name": h.name,
        "matching": h.matching,
        "elements": h.elements,
        "also": list(h.also),
        "proved": h.is_proved,
        "not_at": list(h.not_at),
        "also_at": list(h.also_at),
    }


def _element(worked: Worked) -> WorkedDocument:
    """Return one element worked out as part of a document, with every tap."""
    return {
        **_trace(worked.trace),
        "operator": worked.index,
        "tensor": worked.tensor,
        "got": worked.got,
        "cause": None if worked.other is None else _trace(worked.other),
    }


def element_run_document(model: str, inputs: InputFacts, worked: Worked) -> ElementDocument:
    """Return the document of an element of a profile's own run: `schemas/element.schema.json`."""
    return {"schema": "tflq/element/1", "model": model, "inputs": fields_of(inputs), "element": _element(worked)}


def _trace(trace: ElementTrace) -> TraceDocument:
    return {
        "op": trace.op,
        "profile": trace.profile,
        "index": list(trace.index),
        "told": trace.is_told,
        "taps": [
            {
                "value": _read(tap.value),
                "weight": None if tap.weight is None else _read(tap.weight),
                "product": tap.product,
            }
            for tap in trace.working.taps
        ],
        "outside": trace.working.outside,
        "steps": [{"name": step.name, "value": step.value, "how": step.how} for step in trace.working.steps],
        "expected": trace.expected,
    }


def _read(read: Read) -> ReadDocument:
    return {"input": read.operand, "place": list(read.place), "code": read.code, "zero_point": read.zero_point}


def _growth(growth: Amplification) -> GrowthDocument:
    return {
        "operator": growth.index,
        "reason": growth.reason,
        "spreads": [_spread(s) for s in growth.spreads],
        "choices": [
            {
                "tensor": c.tensor,
                "rows": c.rows,
                "flipped": c.flipped,
                "first": None if c.first is None else {"row": c.first[0], "before": c.first[1], "after": c.first[2]},
            }
            for c in growth.choices
        ],
    }


def _outcome(growth: Amplification) -> ExplainGrowthDocument:
    return {
        "operator": growth.index,
        "reason": growth.reason,
        "later": len(growth.spreads),
        "reached": len(growth.reached),
        "farthest": None if growth.farthest is None else _spread(growth.farthest),
        "flips": any(c.flipped for c in growth.choices),
        "effect": growth.effect,
    }


def _spread(s: Spread) -> SpreadDocument:
    return {
        "index": s.index,
        "op": s.op,
        "elements": s.difference.elements,
        "differing": s.difference.differing,
        "largest": s.difference.largest,
        "unit": s.difference.unit,
        "mean": s.difference.bias,
    }
