"""Verdicts of a suite in lines: a table by operator and types, then what fails and why."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.conformance.judging import Judged, Result, Verdicts
from tflq.report.layout import Line, counted, table

#: Failing cases that are listed; JSON and JUnit have all.
_LISTED = 20


def verdict_lines(verdicts: Verdicts) -> Iterator[Line]:
    """One row an operator and types; failing cases, those with known causes first; one line in the end."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for judged in verdicts.cases:
        groups.setdefault((judged.case.op, judged.case.types), []).append(judged)
    columns = [("operator", "<"), ("types", "<"), ("cases", ">"), ("pass", ">"), ("fail", ">"), ("refused", ">")]
    yield from table(columns, [_row(*key, cases) for key, cases in sorted(groups.items())])
    failing = sorted(verdicts.failing, key=lambda judged: not judged.causes)
    if failing:
        yield Line("")
        rows = [(j.case.id, j.result.value, j.case.aim, j.reason, "\n".join(j.causes[:3])) for j in failing[:_LISTED]]
        yield from table([(t, "<") for t in ("case", "result", "there for", "what", "reproduced by")], rows)
        if len(failing) > _LISTED:
            yield Line(f"and {counted(len(failing) - _LISTED, 'more case')}; --json and --junit have all", "faint")
    passed, refused = verdicts.count(Result.PASSES), verdicts.count(Result.REFUSED)
    said = (
        f"{verdicts.target}: {passed:,} of {counted(len(verdicts.cases), 'case')} give the bits of {verdicts.profile}"
    )
    said += f", {refused:,} refused" if refused else ""
    yield Line(f"{said}; {len(failing):,} fail" if failing else said, "bad" if failing else "good")


def _row(op: str, types: str, cases: list[Judged]) -> tuple[str, ...]:
    refused = sum(judged.result == Result.REFUSED for judged in cases)
    fails = sum(judged.fails for judged in cases)
    return op, types, *(f"{n:,}" for n in (len(cases), len(cases) - fails - refused, fails, refused))
