"""The report of `tflq extract`: the operators taken, and the edges of the cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from tflq.engine.api.subject import ModelFacts
from tflq.escaping import shown
from tflq.face.report.blocks import Block, Next, Report, Text, Verdict
from tflq.face.report.documents.extract import ExtractDocument
from tflq.face.report.documents.shared import TensorShapeDocument, facts_document
from tflq.model.ir import Model, TensorSpec, view


def extract_report(part: Model, chosen: Sequence[int], path: str) -> Report:
    """Build the report of the part at `path`, which has the `chosen` operators of the original."""
    return Report("extract", [*part_blocks(part, chosen, path), Next([f"tflq verify {quote(path)}"])])


def part_blocks(part: Model, chosen: Sequence[int], path: str) -> Iterator[Block]:
    """Yield the operators taken, then each input and output."""
    graph = view(part)
    yield Verdict(f"{len(chosen)} operator(s), {', '.join(map(str, chosen))} of the original", "", subject=path)
    for kind, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for spec in (graph.tensors[tensor] for tensor in tensors):
            yield Text(f"{kind} {shown(spec.name or '')}: {type_text(spec)} {list(spec.shape)}")


def extract_document(facts: ModelFacts, part: Model, chosen: Sequence[int], path: str) -> ExtractDocument:
    """Return the document: `schemas/extract.schema.json`."""
    graph = view(part)
    return {
        "schema": "tflq/extract/1",
        "model": facts_document(facts),
        "file": path,
        "operators": list(chosen),
        "inputs": [tensor_document(graph.tensors[t]) for t in graph.inputs],
        "outputs": [tensor_document(graph.tensors[t]) for t in graph.outputs],
    }


def tensor_document(spec: TensorSpec) -> TensorShapeDocument:
    """Return the name, type and shape of a tensor."""
    return {"name": spec.name or "", "type": type_text(spec), "shape": list(spec.shape)}


def type_text(spec: TensorSpec) -> str:
    """Return the name of a tensor's element type, or its number if the type is unknown."""
    return getattr(spec.type, "label", str(spec.type))
