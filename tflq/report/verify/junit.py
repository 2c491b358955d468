"""A verification as JUnit XML: one test case per operator, so that any CI server lists what differs."""

from __future__ import annotations

from xml.etree import ElementTree

from tflq.escaping import printable, shown
from tflq.report.runtimes import runtime_text
from tflq.report.stages import stage_text
from tflq.verification.results import OperatorResult, Report, Status


def junit(report: Report) -> str:
    """The document as text."""
    counts = {status: sum(o.status == status for o in report.operators) for status in Status}
    suite = ElementTree.Element(
        "testsuite",
        name=printable(f"tflq verify {report.model.path or report.model.sha256}"),
        tests=str(len(report.operators)),
        failures=str(counts[Status.DIFFERS]),
        skipped=str(counts[Status.NOT_COMPARED]),
        errors="0",
    )
    properties = ElementTree.SubElement(suite, "properties")
    facts = {"profile": report.profile, "against": runtime_text(report.against), "mode": report.mode.value}
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=printable(value))
    for operator in report.operators:
        _case(suite, operator)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, operator: OperatorResult) -> None:
    name = f"{operator.index:04d} " + " ".join(shown(t.name) or str(t.index) for t in operator.tensors)
    case = ElementTree.SubElement(suite, "testcase", classname=printable(operator.op), name=printable(name.strip()))
    if operator.status == Status.DIFFERS and operator.worst is not None and operator.worst.difference is not None:
        d = operator.worst.difference
        message = d.problem or f"{d.differing} of {d.elements} elements differ, by up to {d.largest}"
        failure = ElementTree.SubElement(case, "failure", message=printable(f"{message} {d.unit}".strip()))
        lines = [message]
        if d.first is not None:
            lines.append(f"at {list(d.first.index)}: expected {d.first.expected}, got {d.first.got}")
        lines += [stage_text(stage) for stage in (operator.constants.stages if operator.constants else ())]
        failure.text = "\n".join(map(printable, lines))
    elif operator.status == Status.CLOSE and operator.worst is not None and operator.worst.difference is not None:
        d = operator.worst.difference
        ElementTree.SubElement(case, "system-out").text = printable(
            f"not the same bits: {d.differing} of {d.elements} elements differ, by up to {d.at_scale} ULP "
            f"of the largest magnitude; promised: {operator.promise}"
        )
    elif operator.status == Status.NOT_COMPARED:
        reasons = [operator.reason, *(t.reason for t in operator.tensors)]
        ElementTree.SubElement(case, "skipped", message=printable("; ".join(filter(None, reasons))))
