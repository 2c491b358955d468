"""A cut-out part as a document: `schemas/extract.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tflq.api.subject import ModelFacts
from tflq.ir import Model, TensorSpec, view
from tflq.report.extract.lines import type_text


def extract_document(facts: ModelFacts, part: Model, chosen: Sequence[int], path: str) -> dict[str, Any]:
    """Return the part that was cut out as a document."""
    graph = view(part)
    return {
        "schema": "tflq/extract/1",
        "model": asdict(facts),
        "file": path,
        "operators": list(chosen),
        "inputs": [tensor_document(graph.tensors[t]) for t in graph.inputs],
        "outputs": [tensor_document(graph.tensors[t]) for t in graph.outputs],
    }


def tensor_document(spec: TensorSpec) -> dict[str, Any]:
    """Return the name, type and shape of a tensor."""
    return {"name": spec.name or "", "type": type_text(spec), "shape": list(spec.shape)}
