"""JUnit XML of several models, and of complaints: one test suite for each model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from tflq.escaping import printable
from tflq.report.issues import Issue
from tflq.report.numbers import counted


def joined(verb: str, suites: Iterable[str]) -> str:
    """Return several documents of one test suite each as one document."""
    root = ElementTree.Element("testsuites", name=f"tflq {verb}")
    for suite in suites:
        root.append(ElementTree.fromstring(suite.encode()))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    return _text(root)


def failed_suite(verb: str, path: str, error: BaseException) -> str:
    """Return a test suite for a model that could not be read or run: one error."""
    suite = _suite(verb, path, tests=1, errors=1)
    node = ElementTree.SubElement(suite, "testcase", classname=printable(path), name=verb)
    ElementTree.SubElement(node, "error", message=printable(str(error)), type=type(error).__name__)
    return _text(suite)


def issue_suite(verb: str, path: str, issues: Sequence[Issue]) -> str:
    """Return a test suite of a model's complaints. Notes pass; without any complaint there is one passing case."""
    failing = [issue for issue in issues if issue.verdict != "clean"]
    suite = _suite(verb, path, tests=max(1, len(issues)), failures=len(failing))
    for issue in issues:
        node = ElementTree.SubElement(suite, "testcase", classname=issue.rule, name=printable(issue.place))
        if issue.verdict != "clean":
            ElementTree.SubElement(node, "failure", message=printable(issue.message, 2000), type=issue.level)
    if not issues:
        ElementTree.SubElement(suite, "testcase", classname=printable(path), name="clean")
    return _text(suite)


def counts_text(document: str) -> str:
    """Return how many test cases a document has, and how many of them failed, had an error or were skipped."""
    root = ElementTree.fromstring(document.encode())
    counts = {name: int(root.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    parts = [counted(counts["tests"], "case"), f"{counts['failures']:,} failed"]
    parts += [counted(counts["errors"], "error")] * bool(counts["errors"])
    parts += [f"{counts['skipped']:,} skipped"] * bool(counts["skipped"])
    return ", ".join(parts)


def _suite(verb: str, path: str, *, tests: int, failures: int = 0, errors: int = 0) -> ElementTree.Element:
    counts = {"tests": tests, "failures": failures, "errors": errors, "skipped": 0}
    name = printable(f"tflq {verb} {path}")
    return ElementTree.Element("testsuite", {"name": name, **{key: str(value) for key, value in counts.items()}})


def _text(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
