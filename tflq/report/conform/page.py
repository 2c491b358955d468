"""`tflq conform` as a page: a table by operator, types, level and rounding, and what fails and why."""

from __future__ import annotations

from collections import Counter
from shlex import quote

from markupsafe import Markup

from tflq.conformance.judging import Judged, Result, Verdicts
from tflq.report.blocks import Bar
from tflq.report.conform.lines import COLUMNS, STYLES, cause_texts, rows_of, verdict_text
from tflq.report.html.page import page
from tflq.report.html.parts import bars, code, details, next_section, paragraph, section, table, together

_STYLES = {Result.PASSES: "good", Result.REFUSED: "unknown"}
#: Failing cases that are shown; JSON and JUnit have all.
_SHOWN = 500


def verdict_page(verdicts: Verdicts, suite: str) -> str:
    """The page of a target held against a suite."""
    failing = verdicts.failing
    results = [
        Bar(result.value, count, f"{count:,}", _STYLES.get(result, "bad"))
        for result in Result
        if (count := verdicts.count(result))
    ]
    return page(
        "conform",
        verdict_text(verdicts),
        section("results", "Results", bars("result", "cases", results)),
        _causes(verdicts),
        section("operators", "Operators", table(COLUMNS, rows_of(verdicts, whole=True))),
        _failing(failing),
        next_section([f"tflq conform run {quote(suite)} --target CMD --junit report.xml"] if failing else []),
        title=f"{verdicts.target}: tflq conform",
        word=verdicts.verdict.value.upper(),
        tone=STYLES[verdicts.verdict],
        facts=[code(verdicts.target), code(suite), f"level {verdicts.level}", *verdicts.endings],
    )


def _causes(verdicts: Verdicts) -> Markup:
    """Which causes reproduce how many of the explained cases."""
    failing = verdicts.failing
    counts = Counter(cause for judged in failing for cause in judged.causes)
    rows = [(cause, f"{count:,}") for cause, count in counts.most_common(20)]
    columns = [("what reproduces failing cases", "<"), ("explained cases", ">")]
    said = together(*map(paragraph, cause_texts(verdicts)))
    return section("causes", "Causes", said, table(columns, rows) if rows else "") if failing else Markup("")


def _failing(failing: tuple[Judged, ...]) -> Markup:
    if not failing:
        return Markup("")
    columns = [(name, "<") for name in ("case", "operator", "result", "there for", "what", "reproduced by")]
    rows = [
        (j.case.id, f"{j.case.op} {j.case.types}", j.result.value, j.case.aim, j.reason, ", ".join(j.causes[:3]))
        for j in sorted(failing, key=lambda judged: not judged.causes)[:_SHOWN]
    ]
    more = f"; the first {_SHOWN}" if len(failing) > _SHOWN else ""
    return section("failing", "Failing cases", details(f"{len(failing):,}{more}", table(columns, rows), opened=True))
