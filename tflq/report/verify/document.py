"""A verification as a document: `schemas/verify.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.inspection.difference import Difference
from tflq.report.documents import VERIFY, constants_document, model_document, promise_document, runtime_document
from tflq.verification.results import OperatorResult, Report, TensorResult


def verify_document(report: Report) -> dict[str, Any]:
    """A verification: `schemas/verify.schema.json`."""
    first = report.first_divergent
    return {
        "schema": VERIFY,
        "verdict": report.verdict.value,
        "model": model_document(report.model),
        "profile": report.profile,
        "against": runtime_document(report.against),
        "golden": report.golden or None,
        "mode": report.mode.value,
        "inputs": asdict(report.inputs),
        "elements": {"compared": report.compared, "differing": report.differing},
        "first_divergent": first.index if first else None,
        "operators": [_operator(operator) for operator in report.operators],
        "outputs": [_tensor(tensor) for tensor in report.outputs],
        "notes": list(report.notes),
    }


def _operator(operator: OperatorResult) -> dict[str, Any]:
    return {
        "index": operator.index,
        "op": operator.op,
        "version": operator.version,
        "status": operator.status.value,
        "promise": promise_document(operator.promise),
        "reason": operator.reason or None,
        "tensors": [_tensor(tensor) for tensor in operator.tensors],
        "constants": constants_document(operator.constants),
    }


def _tensor(tensor: TensorResult) -> dict[str, Any]:
    return {
        "index": tensor.index,
        "name": tensor.name,
        "type": tensor.type,
        "shape": list(tensor.shape),
        "status": tensor.status.value,
        "promise": promise_document(tensor.promise),
        "reason": tensor.reason or None,
        "difference": _difference(tensor.difference),
    }


def _difference(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    document: dict[str, Any] = asdict(difference)
    document["problem"] = difference.problem or None
    return document
