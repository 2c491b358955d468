"""A verification as a document: `schemas/verify.schema.json`."""

from __future__ import annotations

from tflq.comparison.verification.coverage import Coverage
from tflq.comparison.verification.report import Report
from tflq.comparison.verification.results import OperatorResult, TensorResult
from tflq.face.report.changes import changes_document
from tflq.face.report.documents.shared import (
    constants_document,
    difference_document,
    fields_of,
    model_document,
    promise_document,
    runtime_document,
)
from tflq.face.report.documents.verify import (
    CoverageDocument,
    OperatorDocument,
    ShareDocument,
    TensorDocument,
    VerifyDocument,
)
from tflq.statements import facts_of


def verify_document(report: Report) -> VerifyDocument:
    """Return the document of a verification: `schemas/verify.schema.json`."""
    first = report.first_divergent
    return {
        "schema": "tflq/verify/1",
        "verdict": report.verdict,
        "model": model_document(report.model),
        "profile": report.profile,
        "against": runtime_document(report.against),
        "golden": report.golden or None,
        "mode": report.mode,
        "inputs": fields_of(report.inputs),
        "signatures": {
            name: {"verdict": part.verdict, "compared": part.compared, "differing": part.differing}
            for name, part in ((name, report.of(name)) for name in report.signatures)
        },
        "elements": {"compared": report.compared, "differing": report.differing},
        "first_divergent": first.index if first else None,
        "first_divergent_signature": first.signature or None if first else None,
        "coverage": _coverage(report.coverage),
        "operators": [_operator(operator) for operator in report.operators],
        "outputs": [_tensor(tensor) for tensor in report.outputs],
        "explained": {"profile": report.own, "changes": changes_document(report.changes)} if report.own else None,
        "notes": list(report.notes),
        "facts": facts_of(report.notes),
    }


def _operator(operator: OperatorResult) -> OperatorDocument:
    return {
        "signature": operator.signature or None,
        "index": operator.index,
        "op": operator.op,
        "version": operator.version,
        "status": operator.status,
        "promise": promise_document(operator.promise),
        "reason": operator.reason or None,
        "tensors": [_tensor(tensor) for tensor in operator.tensors],
        "constants": constants_document(operator.constants),
    }


def _tensor(tensor: TensorResult) -> TensorDocument:
    return {
        "signature": tensor.signature or None,
        "index": tensor.index,
        "name": tensor.name,
        "type": tensor.type,
        "shape": list(tensor.shape),
        "status": tensor.status,
        "promise": promise_document(tensor.promise),
        "reason": tensor.reason or None,
        "covered_by": tensor.covered_by,
        "difference": None if tensor.difference is None else difference_document(tensor.difference),
    }


def _share(counts: tuple[int, int]) -> ShareDocument:
    return {"compared": counts[0], "of": counts[1]}


def _coverage(coverage: Coverage) -> CoverageDocument:
    return {
        "operators": _share(coverage.operators),
        "outputs": _share(coverage.outputs),
        "not_compared": list(coverage.missing),
        "inside": list(coverage.inside),
        "not_written": list(coverage.unwritten),
    }
