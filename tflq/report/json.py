"""Reports as JSON documents, each described by a schema in `schemas/`. No timestamps: equal findings, equal bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from tflq.errors import TflqError
from tflq.kernels.kernel import Exactness
from tflq.verification.comparing import Difference
from tflq.verification.constants import Constants
from tflq.verification.golden import Golden
from tflq.verification.inspection import Inspection
from tflq.verification.results import InputFacts, ModelFacts, OperatorResult, Report, TensorResult

VERIFY, INSPECT, RECORD, RUN, ERROR = (
    f"tflq/{kind}/1" for kind in ("verify", "inspect", "record", "run", "error")
)  # fmt: skip


def dumps(document: Mapping[str, Any]) -> str:
    """The document as text: sorted keys, two spaces, no NaN or Infinity literals (they become strings)."""
    return json.dumps(_plain(document), indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)


def verify_document(report: Report) -> dict[str, Any]:
    """A verification: `schemas/verify.schema.json`."""
    first = report.first_divergent
    return {
        "schema": VERIFY,
        "verdict": report.verdict.value,
        "model": _model(report.model),
        "profile": report.profile,
        "against": runtime_document(report.against),
        "golden": report.golden or None,
        "mode": report.mode,
        "inputs": asdict(report.inputs),
        "elements": {"compared": report.compared, "differing": report.differing},
        "first_divergent": first.index if first else None,
        "operators": [_operator(operator) for operator in report.operators],
        "outputs": [_tensor(tensor) for tensor in report.outputs],
        "notes": list(report.notes),
    }


def inspect_document(inspection: Inspection) -> dict[str, Any]:
    """An inspection: `schemas/inspect.schema.json`."""
    return {
        "schema": INSPECT,
        "model": _model(inspection.model),
        "profile": inspection.profile,
        "description": inspection.description,
        "subgraphs": inspection.subgraphs,
        "inputs": list(inspection.inputs),
        "outputs": list(inspection.outputs),
        "macs": inspection.macs,
        "tensors": [_plain(tensor) for tensor in inspection.tensors],
        "operators": [
            {
                **{
                    f.name: _plain(getattr(o, f.name))
                    for f in fields(o)
                    if f.name not in ("options", "constants", "promise", "reason")
                },
                "options": dict(o.options),
                "promise": _promise(o.promise),
                "constants": _constants(o.constants),
                "reason": o.reason or None,
            }
            for o in inspection.operators
        ],
    }


def record_document(model: ModelFacts, golden: Golden, path: str) -> dict[str, Any]:
    """A recording: `schemas/record.schema.json`."""
    return {
        "schema": RECORD,
        "model": _model(model),
        "golden": path,
        "runtime": runtime_document(golden.runtime),
        "inputs": asdict(golden.inputs),
        "samples": len(golden.observations),
        "tensors": golden.tensors,
        "notes": list(golden.notes),
    }


def run_document(
    model: ModelFacts, profile: str, inputs: InputFacts, path: str, arrays: Mapping[str, Any],
    promises: Mapping[str, Exactness],
) -> dict[str, Any]:  # fmt: skip
    """A run: `schemas/run.schema.json`. `arrays` are the entries of the file at `path`, with what each is promised."""
    return {
        "schema": RUN,
        "model": _model(model),
        "profile": profile,
        "inputs": asdict(inputs),
        "file": path or None,
        "arrays": [
            {
                "name": name,
                "dtype": str(value.dtype),
                "shape": list(value.shape),
                "promise": _promise(promises[name]),
            }
            for name, value in arrays.items()
        ],
    }


def error_document(error: BaseException, exit_code: int) -> dict[str, Any]:
    """An error: `schemas/error.schema.json`. The facts are the fields that its class documents."""
    facts = vars(error) if isinstance(error, TflqError) else {}
    known = {name: value for name, value in facts.items() if not name.startswith("_")}
    return {
        "schema": ERROR,
        "kind": type(error).__name__,
        "message": str(error),
        "exit_code": exit_code,
        "facts": {name: _fact(value) for name, value in known.items()},
    }


def _fact(value: Any) -> Any:
    plain = _plain(value)
    return plain if isinstance(plain, (bool, int, float, str, list, type(None))) else str(value)


def _model(facts: ModelFacts) -> dict[str, Any]:
    return {"path": facts.path or None, "size": facts.size, "sha256": facts.sha256}


def runtime_document(runtime: Any) -> dict[str, Any]:
    """What ran: a description, or what a golden file holds of it."""
    return dict(asdict(runtime) if is_dataclass(runtime) and not isinstance(runtime, type) else runtime)


def _operator(operator: OperatorResult) -> dict[str, Any]:
    return {
        "index": operator.index,
        "op": operator.op,
        "version": operator.version,
        "status": operator.status.value,
        "promise": _promise(operator.promise),
        "reason": operator.reason or None,
        "tensors": [_tensor(tensor) for tensor in operator.tensors],
        "constants": _constants(operator.constants),
    }


def _tensor(tensor: TensorResult) -> dict[str, Any]:
    return {
        "index": tensor.index,
        "name": tensor.name,
        "type": tensor.type,
        "shape": list(tensor.shape),
        "status": tensor.status.value,
        "promise": _promise(tensor.promise),
        "reason": tensor.reason or None,
        "difference": _difference(tensor.difference),
    }


def _promise(promise: Exactness | None) -> dict[str, Any] | None:
    return None if promise is None else {"word": promise.word, "ulp": promise.ulp, "reason": promise.reason or None}


def _difference(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    document: dict[str, Any] = asdict(difference)
    document["problem"] = difference.problem or None
    return document


def _constants(constants: Constants | None) -> dict[str, Any] | None:
    if constants is None:
        return None
    return {"stages": [asdict(stage) for stage in constants.stages], "scalars": dict(constants.scalars)}


def _plain(value: Any) -> Any:
    """The value in terms that JSON has."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
