"""Verdicts of a suite as JUnit XML: one test case for each."""

from __future__ import annotations

from xml.etree import ElementTree

from tflq.devices.conformance.joint import joint_causes
from tflq.devices.conformance.judging import Result, SuiteVerdict, Verdicts
from tflq.escaping import printable
from tflq.face.report.joint import certainty_text, counts_text
from tflq.face.report.verbs.conform.report import verdict_text


def junit(verdicts: Verdicts) -> str:
    """Return the document as text. An error of the whole run has a test case of its own."""
    error = "" if verdicts.rest == SuiteVerdict.PASSES else verdict_text(verdicts)
    suite = ElementTree.Element(
        "testsuite",
        name=printable(f"tflq conform {verdicts.target} against {verdicts.profile}"),
        tests=str(len(verdicts.cases) + bool(error)),
        failures=str(len(verdicts.failing)),
        skipped=str(verdicts.count(Result.REFUSED)),
        errors=str(int(bool(error))),
    )
    properties = ElementTree.SubElement(suite, "properties")
    facts = {"verdict": verdicts.verdict.value, "compared": f"{verdicts.compared} of {verdicts.runnable} cases"}
    for number, cause in enumerate(joint_causes(verdicts.cases, verdicts.joint), 1):
        known = certainty_text(cause)
        facts[f"joint cause {number}"] = f"{cause.name}: {counts_text(cause)} that fail{known and f'; {known}'}"
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=printable(value))
    for judged in verdicts.cases:
        case = judged.case
        node = ElementTree.SubElement(suite, "testcase", classname=printable(f"{case.op} {case.types}"), name=case.id)
        if judged.result == Result.REFUSED:
            ElementTree.SubElement(node, "skipped", message=printable(judged.reason))
        elif judged.fails:
            message = printable(f"{judged.result.value}: {judged.reason}")
            lines = [f"there for: {case.aim}", *(f"reproduced by: {cause}" for cause in judged.causes)]
            ElementTree.SubElement(node, "failure", message=message).text = "\n".join(map(printable, lines))
    if error:
        node = ElementTree.SubElement(suite, "testcase", classname="target", name="the run as a whole")
        text = "\n".join(map(printable, verdicts.endings))
        ElementTree.SubElement(node, "error", message=printable(error)).text = text
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
