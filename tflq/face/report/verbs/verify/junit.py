"""A verification as JUnit XML: one test case per operator and output, so that any CI server lists what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from tflq.comparison.verification.report import Report
from tflq.comparison.verification.results import NOT_WRITTEN, Status, TensorResult, Verdict
from tflq.engine.kernels.exactness import EXACT
from tflq.escaping import printable, shown
from tflq.face.report.junit import numbered, stem
from tflq.face.report.runtimes import runtime_text
from tflq.face.report.stages import stage_text
from tflq.face.report.verbs.verify.texts import coverage_texts


@dataclass(frozen=True, slots=True)
class _Case:
    """A test case. `gaps` describes what was not compared, `stages` the output stages of an operator."""

    name: str
    status: Status
    tensors: tuple[TensorResult, ...]
    gaps: str
    stages: tuple[str, ...] = ()


def junit(report: Report) -> str:
    """Return the document as text. A report in which nothing was compared has an error."""
    cases = list(_cases(report))
    counts = {status: sum(case.status == status for case in cases) for status in Status}
    nothing = report.verdict == Verdict.NOTHING
    suite = ElementTree.Element(
        "testsuite",
        name=printable(f"tflq verify {report.model.path or report.model.sha256}"),
        tests=str(len(cases) + nothing),
        failures=str(counts[Status.DIFFERS]),
        skipped=str(counts[Status.NOT_COMPARED] + counts[Status.NOT_WRITTEN]),
        errors=str(int(nothing)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    facts = {
        "profile": report.profile,
        "against": runtime_text(report.against),
        "mode": report.mode.value,
        "verdict": report.verdict.value,
        "compared": next(coverage_texts(report)).removeprefix("Compared: "),
    }
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=printable(value))
    classname = stem(report.model.path) if report.model.path else report.model.sha256[:12]
    for case, name in zip(cases, numbered(case.name for case in cases), strict=True):
        _write(ElementTree.SubElement(suite, "testcase", classname=classname, name=printable(name)), case)
    if nothing:
        node = ElementTree.SubElement(suite, "testcase", classname=classname, name="anything compared")
        ElementTree.SubElement(node, "error", message="nothing was compared")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _cases(report: Report) -> Iterator[_Case]:
    for operator in report.operators:
        start = f"{shown(operator.signature)}/" if operator.signature else ""
        name = f"{start}{operator.index:04d} {shown(operator.op)}"
        stages = tuple(map(stage_text, operator.constants.stages if operator.constants else ()))
        yield _Case(name, operator.status, operator.tensors, operator.gaps, stages)
    for number, output in report.numbered_outputs:
        if output.covered_by is None:
            start = f"{shown(output.signature)}/" if output.signature else ""
            yield _Case(f"{start}output {number}", output.status, (output,), output.reason)
    for one in report.apart:
        if not one.callers:
            gaps = f"no operator runs its {one.operators} operators"
            yield _Case(f"subgraph {one.index}", Status.NOT_COMPARED, (), gaps)


def _write(node: ElementTree.Element, case: _Case) -> None:
    if case.status == Status.DIFFERS:
        texts = [text for tensor in case.tensors for text in _failure(tensor, case.tensors)]
        failure = ElementTree.SubElement(node, "failure", message=printable(texts[0] if texts else "differs"))
        gaps = [f"not compared: {case.gaps}"] if case.gaps else []
        names = [f"tensor {t.index}: {shown(t.name)}" for t in case.tensors if t.name]
        failure.text = "\n".join(map(printable, (*texts, *names, *gaps, *case.stages)))
    elif case.status == Status.CLOSE:
        ElementTree.SubElement(node, "system-out").text = "\n".join(
            printable(text) for tensor in case.tensors if tensor.status == Status.CLOSE for text in _close(tensor)
        )
    elif case.status in (Status.NOT_COMPARED, Status.NOT_WRITTEN):
        ElementTree.SubElement(node, "skipped", message=printable(case.gaps or NOT_WRITTEN))


def _failure(tensor: TensorResult, tensors: Sequence[TensorResult]) -> Iterator[str]:
    """Yield how a tensor differs, with its name if there are several."""
    d = tensor.difference
    if d is None or tensor.status != Status.DIFFERS:
        return
    name = f"{shown(tensor.name) or tensor.index}: " if len(tensors) > 1 else ""
    counts = f"{d.differing} of {d.elements} elements differ, by up to {d.largest} {d.unit}".strip()
    yield name + (d.problem or counts)
    if d.first is not None:
        sample = f" of sample {d.first.sample}" if d.first.sample else ""
        yield f"at {list(d.first.index)}{sample}: expected {d.first.expected}, got {d.first.got}"


def _close(tensor: TensorResult) -> Iterator[str]:
    d = tensor.difference
    if d is not None:
        largest = f"{d.largest} {d.unit}" if d.at_scale is None else f"{d.at_scale} ULP of the largest magnitude"
        promise = f"promised: {tensor.promise or EXACT}"
        yield f"not the same bits: {d.differing} of {d.elements} elements differ, by up to {largest}; {promise}"
