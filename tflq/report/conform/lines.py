"""Verdicts of a suite in lines: a table by operator, types, level and rounding, then what fails and why."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.conformance.causes import explained_groups
from tflq.conformance.judging import Judged, Result, SuiteVerdict, Verdicts
from tflq.report.numbers import counted
from tflq.report.render.line import Line
from tflq.report.render.text import table

COLUMNS = [
    *((name, "<") for name in ("operator", "types", "level", "there for")),
    *((name, ">") for name in ("cases", "pass", "fail", "refused")),
]
STYLES = {
    SuiteVerdict.PASSES: "good",
    SuiteVerdict.FAILS: "bad",
    SuiteVerdict.ENDED: "bad",
    SuiteVerdict.NOTHING: "bad",
    SuiteVerdict.REFUSES: "warning",
}
#: How aims begin that name a regime of scales.
_ROUNDINGS = ("ties", "odd", "a multiplier", "saturation", "small multipliers", "zero points")
#: Failing cases that are listed; JSON and JUnit have all.
_LISTED = 20


def verdict_lines(verdicts: Verdicts) -> Iterator[Line]:
    """One row an operator and types, more where some cases fail; failing cases; one line in the end."""
    yield from table(COLUMNS, rows_of(verdicts))
    failing = sorted(verdicts.failing, key=lambda judged: not judged.causes)
    if failing:
        yield Line("")
        rows = [(j.case.id, j.result.value, j.case.aim, j.reason, "\n".join(j.causes[:3])) for j in failing[:_LISTED]]
        yield from table([(t, "<") for t in ("case", "result", "there for", "what", "reproduced by")], rows)
        if len(failing) > _LISTED:
            yield Line(f"and {counted(len(failing) - _LISTED, 'more case')}; --json and --junit have all", "faint")
    for ending in verdicts.endings[:_LISTED]:
        yield Line(f"after its last answer the target ended with {ending}", "bad")
    yield from (Line(text, "warning") for text in cause_texts(verdicts))
    yield verdict_line(verdicts)


def verdict_line(verdicts: Verdicts) -> Line:
    """Return the verdict with all counts."""
    return Line(verdict_text(verdicts), STYLES[verdicts.verdict])


def verdict_text(verdicts: Verdicts) -> str:
    """Return the verdict with all counts in one line."""
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
    return f"{verdicts.verdict.value.upper()} {verdicts.target}: {', '.join(parts)}"


def cause_texts(verdicts: Verdicts) -> Iterator[str]:
    """Yield how many groups of failing cases were explained, and the faults that came up."""
    done, groups = explained_groups(verdicts.cases)
    if groups:
        yield f"causes sought for {done:,} of {counted(groups, 'group')} of failing cases (alike in operator and types)"
    faults = [judged for judged in verdicts.cases if judged.fault]
    for judged in faults[:_LISTED]:
        yield f"no cause of {judged.case.id} could be sought: {judged.fault}"


def rows_of(verdicts: Verdicts, *, whole: bool = False) -> list[tuple[str, ...]]:
    """One row for each operator, types, level and rounding; unless `whole`, one for all where none fails."""
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
            parts.setdefault((judged.case.level, rounding_of(judged)), []).append(judged)
        rows += [_row(op, types, level, rounding, part) for (level, rounding), part in sorted(parts.items())]
    return rows


def rounding_of(judged: Judged) -> str:
    """Which rounding, limit or geometry a case is there for: its aim, without what the regime adds in passing."""
    parts = judged.case.aim.split("; ")
    return next((part for part in parts if part.startswith(_ROUNDINGS)), parts[0])


def _row(op: str, types: str, level: str, rounding: str, cases: list[Judged]) -> tuple[str, ...]:
    refused = sum(judged.result == Result.REFUSED for judged in cases)
    fails = sum(judged.fails for judged in cases)
    counts = (len(cases), len(cases) - fails - refused, fails, refused)
    return op, types, level, rounding, *(f"{n:,}" for n in counts)
