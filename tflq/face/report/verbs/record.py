"""The report of `tflq record`: which runtime ran what, and what it computed."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, cast

from tflq.comparison.verification.golden import Golden, named_tensors
from tflq.engine.api.subject import ModelFacts
from tflq.face.report.blocks import (
    Block,
    Brief,
    Code,
    Fact,
    Figures,
    Graph,
    Next,
    Note,
    OnPage,
    Pairs,
    Report,
    Section,
    Verdict,
)
from tflq.face.report.documents.record import NotWrittenDocument, RecordDocument
from tflq.face.report.documents.shared import fields_of, model_document, runtime_document
from tflq.face.report.numbers import counted
from tflq.face.report.runtimes import runtime_text
from tflq.statements import facts_of
from tflq.typing import Array

if TYPE_CHECKING:
    from tflq.face.report.graph.standard import ModelView


def record_report(golden: Golden, model: str, path: str) -> Report:
    """Build the report of a recording of `model` at `path`. A page draws the first sample."""
    verdict = Verdict(_what(golden), "", subject=path)
    steps = Next([f"tflq verify {quote(model)} --golden {quote(path)}"])
    notes = Section("notes", "Notes", list(map(Note, golden.notes)))
    return Report(
        "record",
        [verdict, notes, steps, OnPage(lambda view: _page(view, golden))],
        about=(Code(model), " ", Code(path)),
        title=f"{path}: tflq record",
    )


def golden_card(golden: Golden) -> Report:
    """Build the report of a golden that is in no file."""
    seed = "" if golden.inputs.seed is None else f", seed {golden.inputs.seed}"
    where = f"inputs {golden.inputs.source}{seed}; of the model with SHA-256 {golden.model_sha256 or 'unknown'}"
    then = "Next: tflq.verify(model, golden); .observations, .notes"
    return Report("record", [Verdict(_what(golden), subject="Golden"), Brief(where, then)])


def _what(golden: Golden) -> str:
    kept = "all tensors" if golden.tensors else "outputs"
    if golden.tensors and golden.unwritten:
        kept += f" except {len(golden.unwritten)} that the runtime never writes"
    return f"{kept} of {counted(len(golden.observations), 'sample')}, {runtime_text(golden.runtime)}"


def _page(view: ModelView, golden: Golden) -> Iterator[Block]:
    from tflq.face.report.graph.activations import activation_colourings, tensor_figures

    inspection, values = view.inspection, _values(view, golden)
    described = runtime_document(golden.runtime)
    yield Fact(f"inputs: {golden.inputs.source}")
    outputs = Figures(tensor_figures(inspection, tuple(dict.fromkeys(inspection.outputs)), values))
    yield Section("outputs", "Outputs of the first sample", [outputs])
    yield Graph(
        activation_colourings(inspection, values) if golden.tensors else (),
        lambda index: [Figures(tensor_figures(inspection, inspection.operators[index].outputs, values))],
    )
    inputs = Figures(tensor_figures(inspection, inspection.inputs, values))
    yield Section("inputs", "Inputs of the first sample", [inputs])
    facts = Pairs([(name, str(value)) for name, value in described.items() if value != ""])
    yield Section("runtime", "Runtime", [facts])


def _values(view: ModelView, golden: Golden) -> dict[int, Array]:
    """Return the values of the first sample by tensor index, as far as the runtime kept them."""
    if not golden.observations:
        return {}
    first = golden.observations[0]
    edges = view.graph
    known = [
        *zip(edges.inputs, first.inputs, strict=False),
        *zip(edges.outputs, first.outputs, strict=False),
        *first.tensors.items(),
    ]
    return {tensor: value for tensor, value in known if value is not None}


def record_document(model: ModelFacts, golden: Golden, path: str) -> RecordDocument:
    """Return the document: `schemas/record.schema.json`."""
    return {
        "schema": "tflq/record/1",
        "model": model_document(model),
        "golden": path,
        "runtime": runtime_document(golden.runtime),
        "inputs": fields_of(golden.inputs),
        "samples": len(golden.observations),
        "tensors": golden.tensors,
        "not_written": cast(list[NotWrittenDocument], named_tensors(golden.unwritten or ())),
        "notes": list(golden.notes),
        "facts": facts_of(golden.notes),
    }
