"""What `tflq extract`, `diff` and `reduce` say, as lines and as documents (`schemas/extract.schema.json` and so on)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tflq.ir import Model, TensorSpec
from tflq.report.layout import Line, table
from tflq.verification.comparing import Difference, difference
from tflq.verification.model_diff import Change, ModelDiff
from tflq.verification.reduction import Reduced
from tflq.verification.results import ModelFacts


def extract_lines(part: Model, chosen: Sequence[int], path: str, next_command: str) -> Iterator[Line]:
    """The operators taken, the edges of the cut, and the next command."""
    graph = part.subgraphs[0]
    yield Line(f"{path}: {len(chosen)} operator(s), {', '.join(map(str, chosen))} of the original")
    for kind, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in tensors:
            spec = graph.tensors[tensor]
            yield Line(f"{kind} {spec.name}: {_type(spec)} {list(spec.shape)}")
    if next_command:
        yield Line(f"Next: {next_command}", "strong")


def extract_document(facts: ModelFacts, part: Model, chosen: Sequence[int], path: str) -> dict[str, Any]:
    """The same as a document."""
    graph = part.subgraphs[0]
    return {
        "schema": "tflq/extract/1",
        "model": asdict(facts),
        "file": path,
        "operators": list(chosen),
        "inputs": [_tensor(graph.tensors[t]) for t in graph.inputs],
        "outputs": [_tensor(graph.tensors[t]) for t in graph.outputs],
    }


def reduce_lines(found: Reduced, output: str, next_command: str) -> Iterator[Line]:
    """What is left, where the outputs differ if that is known, and the line that shows it again."""
    yield from extract_lines(found.model, found.operators, f"{output}.tflite", "")
    for d in _differences(found):
        if d.first is not None:
            yield Line(
                f"{d.differing:,} of {d.elements:,} elements differ, the first at {list(d.first.index)}: "
                f"profile {d.first.expected}, dump {d.first.got}"
            )
    yield Line(f"Next: {next_command}", "strong")


def reduce_document(facts: ModelFacts, found: Reduced, output: str, next_command: str) -> dict[str, Any]:
    """The same as a document."""
    graph = found.model.subgraphs[0]
    return {
        "schema": "tflq/reduce/1",
        "model": asdict(facts),
        "files": {
            "model": f"{output}.tflite", "golden": f"{output}.npz", "expected": f"{output}.expected.npz",
        },
        "operators": list(found.operators),
        "inputs": [_tensor(graph.tensors[t]) for t in graph.inputs],
        "outputs": [_tensor(graph.tensors[t]) for t in graph.outputs],
        "differing": None if found.got is None else sum(d.differing for d in _differences(found)),
        "next": next_command,
    }  # fmt: skip


def _differences(found: Reduced) -> list[Difference]:
    return [difference(e, g) for e, g in zip(found.expected, found.got or (), strict=False)]


def _type(spec: TensorSpec) -> str:
    return getattr(spec.type, "label", str(spec.type))


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name or "", "type": _type(spec), "shape": list(spec.shape)}


def diff_lines(found: ModelDiff) -> Iterator[Line]:
    """The verdict, then one row a change."""
    names = found.first.path or "first", found.second.path or "second"
    if not found.changes:
        yield Line(f"{names[0]} and {names[1]}: no difference", "good")
        return
    touched = len({(c.first, c.second) for c in found.changes if c.op})
    edges = "; so does what the models take and give" if any(not c.op for c in found.changes) else ""
    yield Line(f"{names[0]} and {names[1]}: {touched} operator(s) differ{edges}", "bad")
    columns = [("operator", "<"), ("differs in", "<"), (names[0], "<"), (names[1], "<")]
    yield from table(columns, [_row(c) for c in found.changes])


def _row(c: Change) -> tuple[str, str, str, str]:
    if not c.op:
        return "model", c.what, c.before, c.after
    numbers = dict.fromkeys("-" if n is None else str(n) for n in (c.first, c.second))
    return f"{'/'.join(numbers)} {c.op}", c.what, c.before, c.after


def diff_document(found: ModelDiff) -> dict[str, Any]:
    """The same as a document."""
    return {
        "schema": "tflq/diff/1",
        "first": asdict(found.first),
        "second": asdict(found.second),
        "changes": [asdict(change) for change in found.changes],
    }
