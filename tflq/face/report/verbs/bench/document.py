"""A benchmark as a document: `schemas/bench.schema.json`. Times are in seconds, memory is in bytes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.comparison.benchmark.results import Benched, Case, Side, ratio
from tflq.face.report.documents import model_document, runtime_document
from tflq.statements import facts_of


def bench_document(found: Benched) -> dict[str, Any]:
    """Return the document of a benchmark."""
    return {
        "schema": "tflq/bench/1",
        "model": model_document(found.facts),
        "profiles": list(found.profiles),
        "threads": found.threads,
        "kernels": found.kernels,
        "limits": {kind: asdict(limit) for kind, limit in found.limits.items()},
        "missing": dict(found.missing),
        "notes": list(found.notes),
        "facts": facts_of(found.notes),
        "interrupted": found.interrupted,
        "cases": [_case(case) for case in found.cases],
    }


def _case(case: Case) -> dict[str, Any]:
    return {
        "signature": case.name or None,
        "inputs": asdict(case.inputs),
        "sides": [_side(case, side) for side in case.sides],
        "operators": [
            {
                "index": op.index,
                "op": op.op,
                "seconds": op.seconds,
                "macs": op.macs,
                "rate": op.rate or None,
                "limit": op.limit or None,
            }
            for op in case.operators
        ],
    }


def _side(case: Case, side: Side) -> dict[str, Any]:
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
        "ratio": asdict(ratio(base, side)) if is_other and base is not None else None,
    }
