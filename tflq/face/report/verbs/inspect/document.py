"""An inspection as a document: `schemas/inspect.schema.json`."""

from __future__ import annotations

from typing import cast

from tflq.comparison.inspection.operators import Inspection
from tflq.face.report.documents.inspect import GraphDocument, InnerDocument, InspectDocument, SignatureDocument
from tflq.face.report.documents.shared import constants_document, model_document, promise_document
from tflq.face.report.json import json_value


def inspect_document(inspection: Inspection) -> InspectDocument:
    """Return the document of an inspection: `schemas/inspect.schema.json`."""
    document = {
        "schema": "tflq/inspect/1",
        "model": model_document(inspection.model),
        "profile": inspection.profile,
        "description": inspection.description,
        "subgraphs": inspection.subgraphs,
        **_graph(inspection),
        "signatures": [_signature(one) for one in inspection.every],
    }
    return cast(InspectDocument, document)


def _signature(inspection: Inspection) -> SignatureDocument:
    inner: list[InnerDocument] = [
        {**_graph(one), "name": one.name, "callers": list(one.callers)} for one in inspection.inner
    ]
    return {"name": inspection.name or None, **_graph(inspection), "inner": inner}


def _graph(inspection: Inspection) -> GraphDocument:
    return {
        "subgraph": inspection.subgraph,
        "inputs": list(inspection.inputs),
        "outputs": list(inspection.outputs),
        "macs": inspection.macs,
        "tensors": [json_value(tensor) for tensor in inspection.tensors],
        "operators": [
            {
                "index": o.index,
                "op": o.op,
                "version": o.version,
                "inputs": list(o.inputs),
                "outputs": list(o.outputs),
                "options": dict(o.options),
                "macs": o.macs,
                "promise": promise_document(o.promise),
                "constants": constants_document(o.constants),
                "reason": o.reason or None,
            }
            for o in inspection.operators
        ],
    }
