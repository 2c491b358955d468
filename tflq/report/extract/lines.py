"""A cut-out part in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.escaping import shown
from tflq.ir import Model, TensorSpec
from tflq.report.render.line import Line


def extract_lines(part: Model, chosen: Sequence[int], path: str, next_command: str) -> Iterator[Line]:
    """The operators taken, the edges of the cut, and the next command."""
    graph = part.subgraphs[0]
    yield Line(f"{path}: {len(chosen)} operator(s), {', '.join(map(str, chosen))} of the original")
    for kind, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in tensors:
            spec = graph.tensors[tensor]
            yield Line(f"{kind} {shown(spec.name or '')}: {type_text(spec)} {list(spec.shape)}")
    if next_command:
        yield Line(f"Next: {next_command}", "strong")


def type_text(spec: TensorSpec) -> str:
    """Return the name of a tensor's element type, or its number where that is unknown."""
    return getattr(spec.type, "label", str(spec.type))
