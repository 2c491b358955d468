"""A reduced difference as a document: `schemas/reduce.schema.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tflq.api.subject import ModelFacts
from tflq.diagnosis.reduction import Reduced
from tflq.ir import view
from tflq.report.extract.document import tensor_document
from tflq.report.reduce.lines import differences_of


def reduce_document(facts: ModelFacts, reduced: Reduced, output: str, next_command: str) -> dict[str, Any]:
    """Return the reduced model and its difference as a document."""
    graph = view(reduced.model)
    return {
        "schema": "tflq/reduce/1",
        "model": asdict(facts),
        "files": {"model": f"{output}.tflite", "golden": f"{output}.npz", "expected": f"{output}.expected.npz"},
        "operators": list(reduced.operators),
        "inputs": [tensor_document(graph.tensors[t]) for t in graph.inputs],
        "outputs": [tensor_document(graph.tensors[t]) for t in graph.outputs],
        "differing": None if reduced.got is None else sum(d.differing for d in differences_of(reduced)),
        "next": next_command,
    }
