"""An inspection as a document: `schemas/inspect.schema.json`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tflq.comparison.inspection.operators import Inspection
from tflq.face.report.documents import INSPECT, constants_document, model_document, promise_document
from tflq.face.report.json import json_value


def inspect_document(inspection: Inspection) -> dict[str, Any]:
    """Return the document of an inspection: `schemas/inspect.schema.json`."""
    return {
        "schema": INSPECT,
        "model": model_document(inspection.model),
        "profile": inspection.profile,
        "description": inspection.description,
        "subgraphs": inspection.subgraphs,
        **_graph(inspection),
        "signatures": [_signature(one) for one in inspection.every],
    }


def _signature(inspection: Inspection) -> dict[str, Any]:
    inner = [{**_graph(one), "name": one.name, "callers": list(one.callers)} for one in inspection.inner]
    return {"name": inspection.name or None, **_graph(inspection), "inner": inner}


def _graph(inspection: Inspection) -> dict[str, Any]:
    return {
        "subgraph": inspection.subgraph,
        "inputs": list(inspection.inputs),
        "outputs": list(inspection.outputs),
        "macs": inspection.macs,
        "tensors": [json_value(tensor) for tensor in inspection.tensors],
        "operators": [
            {
                **{
                    f.name: json_value(getattr(o, f.name))
                    for f in fields(o)
                    if f.name not in ("options", "constants", "promise", "reason")
                },
                "options": dict(o.options),
                "promise": promise_document(o.promise),
                "constants": constants_document(o.constants),
                "reason": o.reason or None,
            }
            for o in inspection.operators
        ],
    }
