"""Verdicts of a suite as JUnit XML: one test case for each."""

from __future__ import annotations

from xml.etree import ElementTree

from tflq.conformance.judging import Result, Verdicts
from tflq.escaping import printable


def junit(verdicts: Verdicts) -> str:
    """The document as text."""
    suite = ElementTree.Element(
        "testsuite",
        name=printable(f"tflq conform {verdicts.target} against {verdicts.profile}"),
        tests=str(len(verdicts.cases)),
        failures=str(len(verdicts.failing)),
        skipped=str(verdicts.count(Result.REFUSED)),
        errors="0",
    )
    for judged in verdicts.cases:
        case = judged.case
        node = ElementTree.SubElement(suite, "testcase", classname=printable(f"{case.op} {case.types}"), name=case.id)
        if judged.result == Result.REFUSED:
            ElementTree.SubElement(node, "skipped", message=printable(judged.reason))
        elif judged.fails:
            message = printable(f"{judged.result.value}: {judged.reason}")
            lines = [f"there for: {case.aim}", *(f"reproduced by: {cause}" for cause in judged.causes)]
            ElementTree.SubElement(node, "failure", message=message).text = "\n".join(map(printable, lines))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
