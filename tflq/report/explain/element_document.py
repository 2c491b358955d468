"""One element worked out as part of a document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.diagnosis.element import ElementTrace
from tflq.diagnosis.element.steps import Read
from tflq.diagnosis.findings import Worked
from tflq.verification.results import InputFacts


def element_document(worked: Worked) -> dict[str, Any]:
    """Return one element worked out as part of a document, with every tap."""
    return {
        **_trace(worked.trace),
        "operator": worked.index,
        "tensor": worked.tensor,
        "got": worked.got,
        "cause": None if worked.other is None else _trace(worked.other),
    }


def element_report(model: str, inputs: InputFacts, worked: Worked) -> dict[str, Any]:
    """An element of a profile's own run: `schemas/element.schema.json`."""
    return {"schema": "tflq/element/1", "model": model, "inputs": asdict(inputs), "element": element_document(worked)}


def _trace(trace: ElementTrace) -> dict[str, Any]:
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


def _read(read: Read) -> dict[str, Any]:
    return {"input": read.operand, "place": list(read.place), "code": read.code, "zero_point": read.zero_point}
