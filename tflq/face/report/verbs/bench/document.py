"""A benchmark as a document: `schemas/bench.schema.json`. Times are in seconds, memory is in bytes."""

from __future__ import annotations

from tflq.comparison.benchmark.results import Benched, Case, Side, ratio
from tflq.face.report.documents.bench import BenchDocument, CaseDocument, SideDocument
from tflq.face.report.documents.shared import fields_of, model_document, runtime_document
from tflq.statements import facts_of


def bench_document(found: Benched) -> BenchDocument:
    """Return the document of a benchmark."""
    return {
        "schema": "tflq/bench/1",
        "model": model_document(found.facts),
        "profiles": list(found.profiles),
        "threads": found.threads,
        "kernels": found.kernels,
        "missing": dict(found.missing),
        "notes": list(found.notes),
        "facts": facts_of(found.notes),
        "interrupted": found.interrupted,
        "cases": [_case(case) for case in found.cases],
    }


def _case(case: Case) -> CaseDocument:
    return {
        "signature": case.name or None,
        "inputs": fields_of(case.inputs),
        "sides": [_side(case, side) for side in case.sides],
        "operators": [
            {"index": op.index, "op": op.op, "seconds": op.seconds, "macs": op.macs, "rate": op.rate or None}
            for op in case.operators
        ],
    }


def _side(case: Case, side: Side) -> SideDocument:
    base = case.base
    is_other = base is not None and side is not base and side.is_timed
    return {
        "name": side.name,
        "kind": "profile" if side.is_tflq else "runtime",
        "runtime": None if side.description is None else runtime_document(side.description),
        "failure": side.failure or None,
        "import": side.imported,
        "load": side.loaded,
        "first": side.first,
        "median": side.median if side.is_timed else None,
        "minimum": side.minimum if side.is_timed else None,
        "invokes": len(side.times),
        "turns": len(side.turns),
        "peak": side.peak or None,
        "bits": side.bits,
        "bits_reason": side.reason or None,
        "ratio": fields_of(ratio(base, side)) if is_other and base is not None else None,
    }
