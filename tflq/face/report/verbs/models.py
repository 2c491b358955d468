"""The reports of `tflq extract`, `doctor` and of what was compiled.

The report of `tflq extract`: the operators taken, and the edges of the cut.

The report of `tflq doctor`: the machine, the runtimes, the self-test.

The report of `tflq doctor --warm`: how much was compiled for the models, and where it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from tflq.devices.suites.doctor import Examination
from tflq.engine.api.files import ModelFacts
from tflq.engine.api.many import Warmed
from tflq.face.report.blocks import Block, Brief, FactLine, Headline, Next, Report, TableBlock, Text
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.models import ExtractDocument
from tflq.face.report.documents.shared import TensorShapeDocument
from tflq.face.report.documents.system import DoctorDocument, WarmDocument
from tflq.face.report.wording import counted
from tflq.model.ir import Model, TensorSpec, view
from tflq.texts import shown


def extract_report(part: Model, chosen: Sequence[int], path: str) -> Report:
    """Build the report of the part at `path`, which has the `chosen` operators of the original."""
    return Report("extract", [*part_blocks(part, chosen, path), Next([f"tflq verify {quote(path)}"])])


def part_blocks(part: Model, chosen: Sequence[int], path: str) -> Iterator[Block]:
    """Yield the operators taken, then each input and output."""
    graph = view(part)
    yield Headline(f"{len(chosen)} operator(s), {', '.join(map(str, chosen))} of the original", "", subject=path)
    for kind, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for spec in (graph.tensors[tensor] for tensor in tensors):
            yield Text(f"{kind} {shown(spec.name or '')}: {type_text(spec)} {list(spec.shape)}")


def extract_document(facts: ModelFacts, part: Model, chosen: Sequence[int], path: str) -> ExtractDocument:
    """Return the document: `schemas/extract.schema.json`."""
    graph = view(part)
    inputs, outputs = ([tensor_document(graph.tensors[t]) for t in edge] for edge in (graph.inputs, graph.outputs))
    return filled(ExtractDocument, None, model=facts, file=path, operators=chosen, inputs=inputs, outputs=outputs)


def tensor_document(spec: TensorSpec) -> TensorShapeDocument:
    """Return the name, type and shape of a tensor."""
    return filled(TensorShapeDocument, spec, name=spec.name or "", type=type_text(spec))


def type_text(spec: TensorSpec) -> str:
    """Return the name of a tensor's element type, or its number if the type is unknown."""
    return getattr(spec.type, "label", str(spec.type))


def doctor_report(examination: Examination) -> Report:
    """Build the report of an examination."""
    return Report("doctor", list(_blocks(examination)))


def doctor_card(examination: Examination) -> Report:
    """Build the report of an examination for a console or a notebook."""
    there = [one.name for one in examination.runtimes if one.version]
    brief = Brief(f"runtimes: {', '.join(there) or 'none'}", "Next: .runtimes, each with .profile")
    return Report("doctor", [*_blocks(examination), brief])


def _blocks(examination: Examination) -> Iterator[Block]:
    versions = f"tflq {examination.tflq}, Python {examination.python}, NumPy {examination.numpy}"
    yield FactLine(f"{versions}, numba {examination.numba}, {examination.platform}")
    came = f"; {examination.shipped} came with tflq" if examination.shipped else "; none came with tflq"
    yield FactLine(f"integer products by: {examination.kernels}; machine code in {examination.machine_code}{came}")
    rows = [(r.name, r.version or "not there", r.profile, r.reason) for r in examination.runtimes]
    yield TableBlock([("runtime", "<"), ("version", "<"), ("profile", "<"), ("", "<")], rows)
    yield _self_test(examination)


def _self_test(examination: Examination) -> Headline:
    if examination.failing:
        return Headline(examination.failing, "bad", subject="self-test")
    if not examination.tested:
        return Headline("left out, as inputs are drawn otherwise here", "warning", subject="self-test")
    return Headline(f"{counted(examination.tested, 'case')} as recorded from LiteRT 2.3", "good", subject="self-test")


def doctor_document(examination: Examination) -> DoctorDocument:
    """Return the document: `schemas/doctor.schema.json`."""
    return filled(DoctorDocument, examination)


def warm_report(warmed: Warmed) -> Report:
    """Build the report."""
    compiled = counted(warmed.functions, "function")
    text = f"{compiled} compiled in {warmed.seconds:.1f} s, kept in {warmed.folder}"
    if not warmed.functions:
        text = f"everything is compiled already, in {warmed.folder}"
    return Report("warm", [Headline(text, "good", subject=counted(warmed.models, "model"))])


def warm_document(warmed: Warmed) -> WarmDocument:
    """Return the document: `schemas/warm.schema.json`."""
    return filled(WarmDocument, warmed)
