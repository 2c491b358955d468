"""JUnit XML of several models, and of complaints: one test suite for each model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, count
from xml.etree import ElementTree

from tflq.escaping import printable, shown
from tflq.face.report.issues import Issue
from tflq.face.report.numbers import counted


def joined(verb: str, suites: Iterable[str]) -> str:
    """Return several documents of one test suite each as one document.

    Models of the same name are distinguished by their paths.
    """
    root = ElementTree.Element("testsuites", name=f"tflq {verb}")
    for suite in suites:
        root.append(ElementTree.fromstring(suite.encode()))
    names = Counter(name for suite in root for name in {case.get("classname") for case in suite.iter("testcase")})
    for one in root:
        for case in one.iter("testcase"):
            if names[case.get("classname")] > 1:
                case.set("classname", one.get("name", "").removeprefix(f"tflq {verb} ").removesuffix(".tflite"))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    return _text(root)


def failed_suite(verb: str, path: str, error: BaseException) -> str:
    """Return a test suite for a model that could not be read or run: one error."""
    suite = _suite(verb, path, tests=1, errors=1)
    node = ElementTree.SubElement(suite, "testcase", classname=stem(path), name=verb)
    kind = type(error).__name__
    ElementTree.SubElement(node, "error", message=printable(str(error)), type=kind).text = f"model: {printable(path)}"
    return _text(suite)


def issue_suite(verb: str, path: str, issues: Sequence[Issue]) -> str:
    """Return a test suite of a model's complaints. Notes pass; without any complaint there is one passing case."""
    failing = [issue for issue in issues if issue.verdict != "clean"]
    suite = _suite(verb, path, tests=max(1, len(issues)), failures=len(failing))
    for issue, name in zip(issues, numbered(f"{i.rule} {i.short or i.place}" for i in issues), strict=True):
        node = ElementTree.SubElement(suite, "testcase", classname=stem(path), name=shown(name))
        if issue.verdict != "clean":
            message = printable(issue.message, 2000)
            failure = ElementTree.SubElement(node, "failure", message=message, type=issue.level)
            failure.text = f"model: {printable(path)}\nplace: {printable(issue.place)}"
    if not issues:
        ElementTree.SubElement(suite, "testcase", classname=stem(path), name="clean")
    return _text(suite)


def stem(path: str) -> str:
    """Return the name of a model for the class of its test cases: that of its file, without .tflite."""
    return shown(os.path.basename(path).removesuffix(".tflite") or path)


def numbered(names: Iterable[str]) -> list[str]:
    """Return the names, each made unique by a number from the second of its kind on."""
    unique: dict[str, None] = {}
    for name in names:
        others = (f"{name} ({number})" for number in count(2))
        unique[next(one for one in chain([name], others) if one not in unique)] = None
    return list(unique)


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
