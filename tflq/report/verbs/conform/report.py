"""The report of a target that ran a suite: a table by operator, types, level and rounding, what fails and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote

from tflq.conformance.causes import explained_groups
from tflq.conformance.judging import Judged, Result, SuiteVerdict, Verdicts
from tflq.report.blocks import (
    Bar,
    Bars,
    Block,
    Code,
    Fact,
    Fold,
    Gap,
    InText,
    Next,
    Report,
    Section,
    Table,
    Text,
    Verdict,
)
from tflq.report.numbers import counted

_COLUMNS = [
    *((name, "<") for name in ("operator", "types", "level", "there for")),
    *((name, ">") for name in ("cases", "pass", "fail", "refused")),
]
_STYLES = {
    SuiteVerdict.PASSES: "good",
    SuiteVerdict.FAILS: "bad",
    SuiteVerdict.ENDED: "bad",
    SuiteVerdict.NOTHING: "bad",
    SuiteVerdict.REFUSES: "warning",
}
#: First words of aims that name a regime of scales.
_ROUNDINGS = ("ties", "odd", "a multiplier", "saturation", "small multipliers", "zero points")
#: Failing cases that text lists and that a page shows; JSON and JUnit have all.
_LISTED, _SHOWN = 20, 500
_BARS = {Result.PASSES: "good", Result.REFUSED: "unknown"}


def suite_report(path: str, cases: int, profile: str) -> Report:
    """Build the report of a suite that was written to `path`."""
    return Report("conform", [Verdict(f"{cases:,} cases of {profile}", "", subject=path)])


def packed_report(suite: str, folder: str, cases: int) -> Report:
    """Build the report of the cases of a suite that were unpacked into a folder."""
    steps = Next([f"fill it, then tflq conform check {quote(suite)} {quote(folder)}"])
    return Report("conform", [Verdict(f"{cases:,} cases", "", subject=folder), steps])


def conform_report(verdicts: Verdicts, suite: str) -> Report:
    """Build the report of a target that ran the suite at `suite`. Its text ends with the verdict."""
    return Report(
        "conform",
        list(_blocks(verdicts, suite)),
        about=(Code(verdicts.target), " ", Code(suite), f" level {verdicts.level}"),
        title=f"{verdicts.target}: tflq conform",
    )


def _blocks(verdicts: Verdicts, suite: str) -> Iterator[Block]:
    failing = sorted(verdicts.failing, key=lambda judged: not judged.causes)
    yield _results(verdicts)
    every = Table(_COLUMNS, _rows(verdicts, whole=True))
    operators: list[Block] = [
        InText([Table(_COLUMNS, _rows(verdicts))]),
        Fold("every type and level", [every], opened=True),
    ]
    yield Section("operators", "Operators", operators)
    if failing:
        yield Gap()
        yield _failing(failing)
    yield from (Fact(f"after its last answer the target ended with {end}", "bad") for end in verdicts.endings[:_LISTED])
    yield Section("causes", "Causes", [*(Text(text, "warning") for text in cause_texts(verdicts)), _causes(failing)])
    if failing:
        yield Next([f"tflq conform run {quote(suite)} --target CMD --junit report.xml"])
    yield Verdict(_counts_text(verdicts), _STYLES[verdicts.verdict], verdicts.verdict.value.upper(), verdicts.target)


def _results(verdicts: Verdicts) -> Section:
    counts = {result: verdicts.count(result) for result in Result}
    bars = [Bar(result.value, n, f"{n:,}", _BARS.get(result, "bad")) for result, n in counts.items() if n]
    return Section("results", "Results", [Bars("result", "cases", bars)])


def _failing(failing: Sequence[Judged]) -> Section:
    columns = [(name, "<") for name in ("case", "operator", "result", "there for", "what", "reproduced by")]
    rows = [
        (j.case.id, f"{j.case.op} {j.case.types}", j.result.value, j.case.aim, j.reason, "\n".join(j.causes[:3]))
        for j in failing[:_SHOWN]
    ]
    rest = f"and {counted(len(failing) - _LISTED, 'more case')}; --json and --junit have all"
    title = counted(len(failing), "failing case") + (f", the first {_SHOWN}" if len(failing) > _SHOWN else "")
    return Section("failing", title, [Table(columns, rows, most=_LISTED, rest=rest)])


def _causes(failing: Sequence[Judged]) -> Fold:
    """Return the number of explained cases that each cause reproduces, for pages."""
    counts = Counter(cause for judged in failing for cause in judged.causes)
    rows = [(cause, f"{count:,}") for cause, count in counts.most_common(_LISTED)]
    columns = [("what reproduces failing cases", "<"), ("explained cases", ">")]
    return Fold("causes by the cases that they explain", [Table(columns, rows)], opened=True)


def verdict_text(verdicts: Verdicts) -> str:
    """Return the verdict with all counts in one line."""
    return f"{verdicts.verdict.value.upper()} {verdicts.target}: {_counts_text(verdicts)}"


def _counts_text(verdicts: Verdicts) -> str:
    parts = [f"{verdicts.compared:,} of {counted(verdicts.runnable, 'case')} compared with {verdicts.profile}"]
    wrong = sum(judged.result == Result.DIFFERS for judged in verdicts.cases)
    parts.append(f"{verdicts.compared - wrong:,} give its bits")
    refusing = len(verdicts.cases) - verdicts.runnable
    if refusing:
        right = sum(j.case.is_refused and j.result == Result.PASSES for j in verdicts.cases)
        parts.append(f"{right:,} of {refusing:,} refused as they must be")
    limit = "" if verdicts.most_refused is None else f" ({verdicts.most_refused:,} allowed)"
    if verdicts.count(Result.REFUSED) or limit:
        parts.append(f"{verdicts.count(Result.REFUSED):,} refused{limit}")
    if verdicts.failing:
        parts.append(f"{len(verdicts.failing):,} fail")
    if verdicts.endings:
        parts.append(f"{counted(len(verdicts.endings), 'call')} failed after the last answer")
    return ", ".join(parts)


def cause_texts(verdicts: Verdicts) -> Iterator[str]:
    """Yield how many groups of failing cases were explained, and the faults that came up."""
    done, groups = explained_groups(verdicts.cases)
    if groups:
        yield f"causes sought for {done:,} of {counted(groups, 'group')} of failing cases (alike in operator and types)"
    faults = [judged for judged in verdicts.cases if judged.fault]
    for judged in faults[:_LISTED]:
        yield f"no cause of {judged.case.id} could be sought: {judged.fault}"


def _rows(verdicts: Verdicts, *, whole: bool = False) -> list[tuple[str, ...]]:
    """Return a row for each operator, types, level and rounding; unless `whole`, one if none of them fails."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for judged in verdicts.cases:
        groups.setdefault((judged.case.op, judged.case.types), []).append(judged)
    rows = []
    for (op, types), cases in sorted(groups.items()):
        if not whole and not any(judged.fails for judged in cases):
            rows.append(_row(op, types, "all", "all", cases))
            continue
        parts: dict[tuple[str, str], list[Judged]] = {}
        for judged in cases:
            parts.setdefault((judged.case.level, _rounding(judged)), []).append(judged)
        rows += [_row(op, types, level, rounding, part) for (level, rounding), part in sorted(parts.items())]
    return rows


def _rounding(judged: Judged) -> str:
    """Return the rounding, limit or geometry that a case tests: the main part of its aim."""
    parts = judged.case.aim.split("; ")
    return next((part for part in parts if part.startswith(_ROUNDINGS)), parts[0])


def _row(op: str, types: str, level: str, rounding: str, cases: list[Judged]) -> tuple[str, ...]:
    refused = sum(judged.result == Result.REFUSED for judged in cases)
    fails = sum(judged.fails for judged in cases)
    counts = (len(cases), len(cases) - fails - refused, fails, refused)
    return op, types, level, rounding, *(f"{n:,}" for n in counts)
