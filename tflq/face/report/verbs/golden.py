"""The reports of `tflq golden` and `record`.

The reports of `tflq golden`: the contents of a golden, and how two of them differ.

The report of `tflq record`: which runtime ran what, and what it computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING

from tflq.comparison.goldens.golden import Golden, named_tensors
from tflq.comparison.goldens.stored import manifest_of
from tflq.comparison.inspection.difference import Difference
from tflq.comparison.results import Verdict as Word
from tflq.engine.api.files import ModelFacts
from tflq.face.report.blocks import (
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Figures,
    Gap,
    Graph,
    Headline,
    Next,
    Note,
    OnPage,
    Pairs,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.court import ExplainedChangeDocument, GoldenDiffDocument, RecordingDocument
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.system import GoldenShowDocument
from tflq.face.report.documents.verification import RecordDocument
from tflq.face.report.joint import change_blocks
from tflq.face.report.matrices import Strip
from tflq.face.report.verbs.verify import STYLES
from tflq.face.report.wording import counted, runtime_text
from tflq.texts import facts_of
from tflq.typing import Array
from tflq.verbs.drift import Drift, Drifted, OperatorDrift

if TYPE_CHECKING:
    from tflq.face.report.graph.drawing import ModelView

_COLUMNS = (("#", ">"), ("operator", "<"), ("what", "<"), ("differing", ">"), ("largest", ">"), ("first", "<"))


def golden_report(golden: Golden, path: str, arrays: tuple[int, int]) -> Report:
    """Build the report of a golden; `arrays` are the numbers of its arrays and of different ones."""
    what = "all tensors" if golden.tensors else "outputs"
    facts = [
        ("runtime", runtime_text(golden.runtime)),
        ("model", golden.model_sha256 or "unknown"),
        ("arrays", f"{arrays[0]:,}, of which {arrays[1]:,} are different"),
        *(("tolerance", f"{t.operator}: {t.steps} until {t.expires}, {t.reason}") for t in golden.tolerances),
        *(("note", note) for note in golden.notes),
    ]
    verdict = Headline(f"{what} of {counted(len(golden.observations), 'sample')}", subject=path)
    return Report("golden", [verdict, Pairs(facts)])


def written_report(path: str, samples: int) -> Report:
    """Build the report of a golden that was written."""
    return Report("golden", [Headline(counted(samples, "sample"), "", subject=path)])


def drift_report(drift: Drift) -> Report:
    """Build the report of two recordings: the operators that differ, what explains the first, the verdict."""
    return Report("golden", list(_drift_blocks(drift)))


def drift_card(drift: Drift) -> Report:
    """Build the report of two recordings for a console or a notebook."""
    shades = {Drifted.SAME: "good", Drifted.CHANGED: "bad", Drifted.FOLLOWS: "warning"}
    title = "operators: red changed, yellow follows from it, green is the same"
    strip = Strip(title, [shades.get(o.drifted, "unknown") for o in drift.operators])
    changed = drift.changed[0] if drift.changed else None
    where = f"{drift.first} and {drift.second}"
    if changed is not None:
        where = f"First: operator {changed.place} {changed.op}"
    return Report("golden", [*_drift_blocks(drift), strip, Brief(where, "Next: .changed, .operators, .findings")])


def _drift_blocks(drift: Drift) -> Iterator[Block]:
    rows = [_row(o) for o in drift.operators if o.drifted in (Drifted.CHANGED, Drifted.FOLLOWS)]
    if rows:
        yield TableBlock(_COLUMNS, rows)
        yield Gap()
    yield FactLine(f"first:  {runtime_text(drift.runtimes[0])}")
    yield FactLine(f"second: {runtime_text(drift.runtimes[1])}")
    causes = _causes(drift)
    if drift.own is not None:
        yield Text(f"{drift.own[0]} reproduces every bit of the first, {drift.own[1]} every bit of the second.")
        yield from change_blocks(drift.changes, *drift.own)
    elif causes:
        changed = drift.changed[0]
        yield Text(f"operator {changed.place} {changed.op} of the second computes as {', '.join(causes[:3])}")
    operators = sum(o.samples == drift.samples for o in drift.operators)
    outputs = sum(count == drift.samples for count in drift.output_samples)
    yield FactLine(
        f"Compared in {counted(drift.samples, 'sample')}: {operators:,} of {len(drift.operators):,} operators, "
        f"{outputs:,} of {len(drift.outputs):,} outputs"
    )
    word = Word.EXPLAINED.value.upper() if drift.verdict == Word.EXPLAINED else ""
    yield Headline(_verdict_text(drift), STYLES[drift.verdict], word)


def _causes(drift: Drift) -> tuple[str, ...]:
    """Return the causes that reproduce the second recording's bits of the first operator that changed."""
    explanation = None if drift.findings is None else drift.findings.explanation
    return () if explanation is None else tuple(cause.name for cause in explanation.exact)


def _verdict_text(drift: Drift) -> str:
    count = counted(drift.samples, "sample")
    if drift.verdict == Word.NOTHING:
        return "NOTHING COMPARED: the recordings have no output and no operator's result in common"
    if drift.verdict == Word.INCOMPLETE:
        return "INCOMPLETE: nothing differs, but not everything is in both recordings"
    if not drift.differs:
        return f"same bits in {count}"
    if not drift.changed:
        return f"outputs differ in {count}{_effect(drift)}; record with --all-tensors to see which operators changed"
    named = sorted({o.op for o in drift.changed})
    return f"{counted(len(drift.changed), 'operator')} changed bits: {', '.join(named)}{_effect(drift)}"


def _effect(drift: Drift) -> str:
    """Return how far the outputs differ at most, and how many of their rows choose another element."""
    differing = [d for d in drift.outputs if d is not None and not d.same]
    if not any(drift.output_samples):
        return ""
    if not differing:
        return "; the same outputs"
    largest = max(differing, key=lambda d: d.largest)
    rows, flipped = sum(c.rows for c in drift.choices), sum(c.flipped for c in drift.choices)
    far = f"; outputs by up to {largest.largest:,} {largest.unit}" if largest.largest else "; the outputs too"
    return far + (f", arg-max flips in {flipped:,} of {counted(rows, 'row')}" if rows else "")


def _row(operator: OperatorDrift) -> tuple[str, ...]:
    what = "changed" if operator.drifted == Drifted.CHANGED else "its inputs differ"
    d: Difference | None = operator.difference
    if d is None or d.first is None:
        return operator.place, operator.op, what, "", "", ""
    at = f"{list(d.first.index)}: {d.first.expected} -> {d.first.got}"
    count = f"{d.differing:,} of {d.elements:,}"
    return operator.place, operator.op, what, count, f"{d.largest} {d.unit}", at


# --- Documents -------------------------------------------------------------------------------------------------------


def golden_document(golden: Golden, path: str, arrays: tuple[int, int]) -> GoldenShowDocument:
    """Return the manifest of the golden as a bundle, its path, and the numbers of its arrays and of different ones."""
    manifest = manifest_of(golden, len(golden.observations))
    return filled(GoldenShowDocument, None, golden=path, arrays=arrays[0], different=arrays[1], manifest=manifest)


def drift_document(drift: Drift) -> GoldenDiffDocument:
    """Return the document, with every operator: `schemas/golden-diff.schema.json`."""
    recordings = zip((drift.first, drift.second), drift.runtimes, strict=True)
    first, second = (filled(RecordingDocument, None, golden=golden, runtime=runtime) for golden, runtime in recordings)
    own = None if drift.own is None else filled(ExplainedChangeDocument, drift, first=drift.own[0], second=drift.own[1])
    return filled(GoldenDiffDocument, drift, first=first, second=second, causes=_causes(drift), explained=own)


def record_report(golden: Golden, model: str, path: str) -> Report:
    """Build the report of a recording of `model` at `path`. A page draws the first sample."""
    verdict = Headline(_what(golden), "", subject=path)
    steps = Next([f"tflq verify {quote(model)} --golden {quote(path)}"])
    notes = Section("notes", "Notes", list(map(Note, golden.notes)))
    return Report(
        "record",
        [verdict, notes, steps, OnPage(lambda view: _page(view, golden))],
        about=(CodeBlock(model), " ", CodeBlock(path)),
        title=f"{path}: tflq record",
    )


def golden_card(golden: Golden) -> Report:
    """Build the report of a golden that is in no file."""
    seed = "" if golden.inputs.seed is None else f", seed {golden.inputs.seed}"
    where = f"inputs {golden.inputs.source}{seed}; of the model with SHA-256 {golden.model_sha256 or 'unknown'}"
    then = "Next: tflq.verify(model, golden); .observations, .notes"
    return Report("record", [Headline(_what(golden), subject="Golden"), Brief(where, then)])


def _what(golden: Golden) -> str:
    kept = "all tensors" if golden.tensors else "outputs"
    if golden.tensors and golden.unwritten:
        kept += f" except {len(golden.unwritten)} that the runtime never writes"
    return f"{kept} of {counted(len(golden.observations), 'sample')}, {runtime_text(golden.runtime)}"


def _page(view: ModelView, golden: Golden) -> Iterator[Block]:
    from tflq.face.report.graph.colouring import activation_colourings, tensor_figures

    inspection, values = view.inspection, _values(view, golden)
    runtime = golden.runtime
    described = runtime if isinstance(runtime, Mapping) else asdict(runtime)
    yield FactLine(f"inputs: {golden.inputs.source}")
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


def record_document(golden: Golden, model: ModelFacts | None = None, path: str = "") -> RecordDocument:
    """Return the document: `schemas/record.schema.json`."""
    return filled(
        RecordDocument,
        golden,
        model=model,
        golden=path,
        samples=len(golden.observations),
        not_written=named_tensors(golden.unwritten or ()),
        facts=facts_of(golden.notes),
    )
