"""The report of `tflq reduce`: what is left of the model, and where its outputs differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from tflq.comparison.inspection.difference import Difference, difference
from tflq.diagnosis.reduction import Reduced
from tflq.engine.api.subject import ModelFacts
from tflq.face.report.blocks import Brief, Next, Report, Text, Verdict
from tflq.face.report.documents.reduce import FileDocument, ReduceDocument
from tflq.face.report.documents.shared import facts_document
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.extract import part_blocks, tensor_document
from tflq.model.ir import view


def reduce_report(reduced: Reduced, path: str, next_command: str) -> Report:
    """Build the report of a reduced model in the file at `path`; `next_command` shows the difference again."""
    part = part_blocks(reduced.model, reduced.operators, path)
    return Report("reduce", [*part, *map(Text, remaining(reduced)), Next([next_command])])


def reduce_card(reduced: Reduced) -> Report:
    """Build the report of a reduced model that is in no file."""
    sizes = ", ".join(str(list(value.shape)) for value in reduced.sample)
    kept = ", ".join(map(str, reduced.operators))
    what = f"Reduced to {counted(len(reduced.operators), 'operator')} of the original ({kept}), with inputs {sizes}"
    where = next(remaining(reduced), "the check still shows the difference; what the device gives is not known")
    return Report(
        "reduce", [Verdict(what), Brief(where, "Next: tflq.save(reduced.model, path); .sample, .expected, .got")]
    )


def remaining(reduced: Reduced) -> Iterator[str]:
    """Yield how each output of the reduced model differs, if the device's outputs are known."""
    for d in _differences(reduced):
        if d.first is not None:
            yield (
                f"{d.differing:,} of {d.elements:,} elements differ, the first at {list(d.first.index)}: "
                f"profile {d.first.expected}, dump {d.first.got}"
            )


def _differences(reduced: Reduced) -> list[Difference]:
    return [difference(e, g) for e, g in zip(reduced.expected, reduced.got or (), strict=False)]


def reduce_document(facts: ModelFacts, reduced: Reduced, files: Mapping[str, str], next_command: str) -> ReduceDocument:
    """Return the document: `schemas/reduce.schema.json`. `files` are the written ones by what they hold."""
    graph = view(reduced.model)
    return {
        "schema": "tflq/reduce/1",
        "model": facts_document(facts),
        "files": cast(FileDocument, dict(files)),
        "operators": list(reduced.operators),
        "inputs": [tensor_document(graph.tensors[t]) for t in graph.inputs],
        "outputs": [tensor_document(graph.tensors[t]) for t in graph.outputs],
        "differing": None if reduced.got is None else sum(d.differing for d in _differences(reduced)),
        "next": next_command,
    }
