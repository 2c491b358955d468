"""Several models: a summary with the gravest first, and JUnit XML.

Summaries of several models: the gravest first, then a row for each.

JUnit XML of several models, and of complaints: one test suite for each model.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import chain, count
from shlex import quote
from typing import Any, Generic, TypeVar
from xml.etree import ElementTree

from tflq.face.report.blocks import Columns, Headline, Next, Report, TableBlock
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.models import JudgedModelDocument, SummaryDocument
from tflq.face.report.documents.shared import ErrorDocument
from tflq.face.report.issues import Issue
from tflq.face.report.json import error_document
from tflq.face.report.wording import counted
from tflq.texts import printable, shown

T = TypeVar("T")

FAILED = "failed"
#: Most characters of the message of a test case.
_MESSAGE = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Outcome(Generic[T]):
    """The result of a verb for one model, or the error that it met, and its exit code."""

    path: str
    found: T | None
    code: IntEnum
    error: Exception | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SummaryRow:
    """One model in a summary: a word for the outcome, the cells of its row, its document and exit code."""

    word: str
    cells: tuple[str, ...]
    document: Mapping[str, Any]
    code: IntEnum


def summary_report(verb: str, columns: Columns, outcomes: Sequence[Outcome[SummaryRow]], code: IntEnum) -> Report:
    """Build the summary of several models: counts of the words, the command for the gravest, and a row for each.

    `code` is the gravest exit code.
    """
    if not outcomes:
        return Report(verb, [Headline("no model was finished", "warning", "INTERRUPTED", counted(0, "model"))])
    words = [FAILED if outcome.found is None else outcome.found.word for outcome in outcomes]
    worst, word = next(
        (pair for pair in zip(outcomes, words, strict=True) if pair[0].code == code), (outcomes[0], words[0])
    )
    counts = Counter(words)
    ordered = sorted(counts, key=lambda other: other != word)
    style = "good" if not worst.code else "warning" if worst.error is None else "bad"
    blank = ("",) * len(columns)
    rows = [
        [first, *(blank if o.found is None else o.found.cells), o.path, "" if o.error is None else str(o.error)]
        for o, first in zip(outcomes, words, strict=True)
    ]
    text = ", ".join(f"{counts[other]} {other}" for other in ordered)
    return Report(
        verb,
        [
            Headline(text, style, word.upper(), counted(len(outcomes), "model")),
            Next([f"tflq {verb} {quote(worst.path)}"] if worst.code else []),
            TableBlock((("", "<"), *columns, ("model", "<"), ("error", "<")), rows),
        ],
    )


def summary_document(verb: str, outcomes: Sequence[Outcome[SummaryRow]], code: IntEnum) -> SummaryDocument:
    """Return the summary with each model's own document: `schemas/summary.schema.json`."""
    models = [
        filled(
            JudgedModelDocument,
            outcome,
            outcome=FAILED if outcome.found is None else outcome.found.word,
            report=None if outcome.found is None else outcome.found.document,
            error=error_of(outcome),
        )
        for outcome in outcomes
    ]
    return filled(SummaryDocument, None, verb=verb, exit_code=int(code), models=models)


def error_of(outcome: Outcome[Any]) -> ErrorDocument | None:
    """Return the document of the error that a model met."""
    return None if outcome.error is None else error_document(outcome.error, outcome.code)


# --- JUnit XML -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """A test case. `tag` is failure, error or skipped, with a `message`; system-out for a remark; "" if it passes."""

    classname: str
    name: str
    tag: str = ""
    message: str = ""
    lines: Sequence[str] = ()
    kind: str = ""


def junit_suite(name: str, cases: Sequence[JUnitCase], facts: Mapping[str, str] | None = None) -> ElementTree.Element:
    """Return a test suite with its cases, and facts about the run as properties. Names of cases are in final form."""
    counts = Counter(case.tag for case in cases)
    numbers = {"failures": counts["failure"], "skipped": counts["skipped"], "errors": counts["error"]}
    suite = ElementTree.Element("testsuite", name=printable(name), tests=str(len(cases)))
    for key, number in numbers.items():
        suite.set(key, str(number))
    if facts is not None:
        properties = ElementTree.SubElement(suite, "properties")
        for key, value in facts.items():
            ElementTree.SubElement(properties, "property", name=key, value=printable(value))
    for case in cases:
        node = ElementTree.SubElement(suite, "testcase", classname=case.classname, name=case.name)
        if case.tag:
            words = {"message": printable(case.message), "type": case.kind}
            inner = ElementTree.SubElement(node, case.tag, {key: word for key, word in words.items() if word})
            inner.text = "\n".join(map(printable, case.lines))
    return suite


def joined(verb: str, suites: Iterable[ElementTree.Element]) -> ElementTree.Element:
    """Return test suites of several models as one element.

    Models of the same name are distinguished by their paths.
    """
    root = ElementTree.Element("testsuites", name=f"tflq {verb}")
    root.extend(suites)
    names = Counter(name for suite in root for name in {case.get("classname") for case in suite.iter("testcase")})
    for one in root:
        for case in one.iter("testcase"):
            if names[case.get("classname")] > 1:
                case.set("classname", one.get("name", "").removeprefix(f"tflq {verb} ").removesuffix(".tflite"))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    return root


def failed_suite(verb: str, path: str, error: BaseException) -> ElementTree.Element:
    """Return a test suite for a model that could not be read or run: one error."""
    case = JUnitCase(stem(path), verb, "error", str(error), [f"model: {printable(path)}"], type(error).__name__)
    return junit_suite(f"tflq {verb} {path}", [case])


def issue_suite(verb: str, path: str, issues: Sequence[Issue]) -> ElementTree.Element:
    """Return a test suite of a model's complaints. Notes pass; without any complaint there is one passing case."""
    cases = [] if issues else [JUnitCase(stem(path), "clean")]
    for issue, name in zip(issues, numbered(f"{i.rule} {i.short or i.place}" for i in issues), strict=True):
        case = JUnitCase(stem(path), shown(name))
        if issue.verdict != "clean":
            lines = [f"model: {printable(path)}", f"place: {printable(issue.place)}"]
            message = printable(issue.message, _MESSAGE)
            case = replace(case, tag="failure", message=message, lines=lines, kind=issue.level)
        cases.append(case)
    return junit_suite(f"tflq {verb} {path}", cases)


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


def junit_text(root: ElementTree.Element) -> str:
    """Return test suites as a file."""
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def counts_text(root: ElementTree.Element) -> str:
    """Return how many test cases there are, and how many of them failed, had an error or were skipped."""
    counts = {name: int(root.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    parts = [counted(counts["tests"], "case"), f"{counts['failures']:,} failed"]
    parts += [counted(counts["errors"], "error")] * bool(counts["errors"])
    parts += [f"{counts['skipped']:,} skipped"] * bool(counts["skipped"])
    return ", ".join(parts)
