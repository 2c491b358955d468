"""The report of a target that ran a suite: the verdict, causes, refusals by reason, and a table of operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote

from tflq.devices.conformance.causes import explained_groups
from tflq.devices.conformance.joint import Unexplained, joint_causes, refusals, unexplained
from tflq.devices.conformance.judging import Judged, Result, SuiteVerdict, Verdicts
from tflq.devices.conformance.skeletons import Skeleton
from tflq.face.report.blocks import (
    Bar,
    Bars,
    Block,
    Brief,
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
from tflq.face.report.joint import joint_blocks, some
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.conform.picture import picture

_COLUMNS = [
    *((name, "<") for name in ("operator", "types", "level", "there for")),
    *((name, ">") for name in ("cases", "pass", "fail", "refused")),
]
_STYLES = {
    SuiteVerdict.PASSES: "good",
    SuiteVerdict.FAILS: "bad",
    SuiteVerdict.ACCEPTED: "warning",
    SuiteVerdict.INTERRUPTED: "warning",
    SuiteVerdict.ENDED: "bad",
    SuiteVerdict.NOTHING: "bad",
    SuiteVerdict.REFUSES: "warning",
}
_FAIL = [name for name, _ in _COLUMNS].index("fail")
#: First words of aims that name a regime of scales.
_ROUNDINGS = ("ties", "odd", "a multiplier", "saturation", "small multipliers", "zero points")
#: Failing cases that text lists and that a page shows; JSON and JUnit have all.
_LISTED, _SHOWN = 20, 500
#: Rows of reasons, and of groups without a cause.
_CAUSES = 8
_PLURALS = {Result.DIFFERS: "differ", Result.PASSES: "pass"}
_BARS = {Result.PASSES: "good", Result.REFUSED: "unknown"}


def suite_report(path: str, cases: int, profile: str) -> Report:
    """Build the report of a suite that was written to `path`."""
    return Report("conform", [Verdict(f"{cases:,} cases of {profile}", "", subject=path)])


def packed_report(suite: str, folder: str, cases: int) -> Report:
    """Build the report of the cases of a suite that were unpacked into a folder."""
    steps = Next([f"fill it, then tflq conform check {quote(suite)} {quote(folder)}"])
    return Report("conform", [Verdict(f"{cases:,} cases", "", subject=folder), steps])


def skeleton_report(skeleton: Skeleton) -> Report:
    """Build the report of a target's skeleton that was written."""
    steps = [skeleton.build] if skeleton.build else []
    steps += ["tflq conform make -o suite.npz --level smoke"]
    steps += [f"tflq conform run suite.npz --target {quote(skeleton.command)}"]
    return Report("conform", [Verdict("a target that runs RESHAPE", "", subject=skeleton.path), Next(steps)])


def conform_report(
    verdicts: Verdicts,
    suite: str,
    *,
    work: str | None = None,
    has_table: bool = False,
    again: str = "",
    python: str | None = None,
) -> Report:
    """Build the report of a target that ran the suite at `suite`: verdict, causes, refusals by reason.

    Text has the table of operators if `has_table`; pages always have it. `work` is the folder that keeps the cases.
    `again` is the command that made these verdicts, if it was not `run`; `python` is the Python that ran the target.
    """
    about = (Code(verdicts.target), " ", Code(suite), f" level {verdicts.level}")
    blocks = list(_blocks(verdicts, suite, work, again, python, has_table=has_table))
    return Report("conform", blocks, about=about, title=f"{verdicts.target}: tflq conform")


def conform_card(verdicts: Verdicts) -> Report:
    """Build the report of a target for a console or a notebook."""
    first = next((one for one in verdicts.failing), None)
    where = f"First: {first.case.id}: {first.reason}" if first is not None else _headline(verdicts)
    report = conform_report(verdicts, "SUITE")
    return replace(report, blocks=[*report.blocks, Brief(where, "Next: .cases, .failing, .joint")])


def _blocks(
    verdicts: Verdicts, suite: str, work: str | None, again: str, python: str | None, *, has_table: bool
) -> Iterator[Block]:
    failing = sorted(verdicts.failing, key=lambda judged: (judged.result != Result.DIFFERS, not judged.causes))
    word, style = verdicts.verdict.value.upper(), _STYLES[verdicts.verdict]
    yield Verdict(_counts_text(verdicts), style, word, verdicts.target, headline=_headline(verdicts))
    if verdicts.left:
        yield Fact(f"interrupted: {verdicts.left:,} of {counted(_all(verdicts), 'case')} were not judged", "warning")
    yield from (Fact(f"after its last answer the target ended with {end}", "bad") for end in verdicts.endings[:_LISTED])
    yield _results(verdicts)
    yield picture(verdicts)
    if failing:
        yield Section("causes", "Causes", list(_cause_blocks(verdicts)))
    yield from _refusals(verdicts)
    yield Next(_next(verdicts, suite, work, again, python, has_table=has_table))
    if failing:
        yield Section("failing", "Failing cases", [InText([_list(failing)] if has_table else []), *_cases(failing)])
    every = Table(_COLUMNS, _rows(verdicts, whole=True))
    rows = [Gap(), Table(_COLUMNS, _rows(verdicts))] if has_table else []
    yield Section("operators", "Operators", [InText(rows), Fold("every type and level", [every])])


def _failures_first() -> list[Result]:
    """Return the results of cases: failures, then refusals, then passes."""
    return sorted(Result, key=lambda result: (result == Result.PASSES, result == Result.REFUSED))


def _headline(verdicts: Verdicts) -> str:
    """Return the number of cases of each result, failures first, and what they were compared with."""
    counts = [(verdicts.count(result), _PLURALS.get(result, result.value)) for result in _failures_first()]
    said = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    cases = f"{verdicts.compared:,} of {counted(verdicts.runnable, 'case')}"
    return f"{said}; {cases} compared with {verdicts.profile}"


def _all(verdicts: Verdicts) -> int:
    return verdicts.left + len(verdicts.cases)


def _cause_blocks(verdicts: Verdicts) -> Iterator[Block]:
    """Yield the joint causes, the failing cases without a cause, and how many groups were searched."""
    yield from joint_blocks(joint_causes(verdicts.cases, verdicts.joint))
    left = unexplained(verdicts.cases, verdicts.joint)
    if left:
        columns = (("no cause known", "<"), ("result", "<"), ("failing", ">"), ("look at", "<"), ("as", "<"))
        rows = [(f"{g.op} {g.types}", g.result.value, f"{g.failing:,}", g.first, _reason(g)) for g in left]
        yield Table(columns, rows, most=_CAUSES, rest="and {left} more (--table lists all cases)")
    yield from (Text(text, "faint") for text in cause_texts(verdicts))


def _refusals(verdicts: Verdicts) -> Iterator[Block]:
    groups = refusals(verdicts.cases)
    if groups:
        rows = [(f"{len(g.cases):,}", g.reason, some(g.operators, 3)) for g in groups]
        columns = (("refused", ">"), ("reason of the first case", "<"), ("operators", "<"))
        table = Table(columns, rows, most=_CAUSES, rest="and {left} more reasons (--json has all)")
        yield Section("refused", "Refused, by reason", [table])


def _reason(group: Unexplained) -> str:
    return group.reason + (f"; nearest: {group.nearest}" if group.nearest else "")


def _next(
    verdicts: Verdicts, suite: str, work: str | None, again: str, python: str | None, *, has_table: bool
) -> list[str]:
    """Return the commands that lead on, the most useful one first."""
    asked = again or f"tflq conform run {quote(suite)} --target {quote(verdicts.target)}"
    asked += f" --python {quote(python)}" if python is not None and not again else ""
    kept = work or "WORK"
    commands = []
    if verdicts.left and not again:
        commands.append(f"{asked} --work {quote(kept)}")
    differing = next((one for one in verdicts.failing if one.result == Result.DIFFERS), None)
    if differing is not None and (work is not None or not again):
        if work is None:
            commands.append(f"{asked} --work {kept}")
        commands.append(f"tflq explain {quote(kept)}/{differing.case.id}")
    if verdicts.failing and not has_table:
        commands.append(f"{asked} --table")
    return list(dict.fromkeys(commands))


def _results(verdicts: Verdicts) -> Section:
    counts = {result: verdicts.count(result) for result in _failures_first()}
    bars = [Bar(result.value, n, f"{n:,}", _BARS.get(result, "bad")) for result, n in counts.items() if n]
    return Section("results", "Results", [Bars("result", "cases", bars)])


_FAILING = [(name, "<") for name in ("case", "operator", "result", "there for", "what", "reproduced by")]


def _row_of(judged: Judged) -> tuple[str, ...]:
    case, causes = judged.case, "\n".join(judged.causes[:3])
    return case.id, f"{case.op} {case.types}", judged.result.value, case.aim, judged.reason, causes


def _list(failing: Sequence[Judged]) -> Table:
    rest = "and {left} more failing cases; --json and --junit have all"
    return Table(_FAILING, [_row_of(one) for one in failing], most=_LISTED, rest=rest)


def _cases(failing: Sequence[Judged]) -> Iterator[Block]:
    """Yield a table for each result, for pages: cases that differ are apart from those without an answer."""
    for result in Result:
        rows = [_row_of(one) for one in failing if one.result == result]
        if rows:
            title = f"{result.value}: {counted(len(rows), 'case')}"
            title += f", the first {_SHOWN}" if len(rows) > _SHOWN else ""
            yield Fold(title, [Table(_FAILING, rows[:_SHOWN])])


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
        yield f"causes searched for {done:,} of {counted(groups, 'group')} of failing cases (of one operator and types)"
    if verdicts.joint.fault:
        yield f"an arithmetic for many cases could not be searched: {verdicts.joint.fault}"
    faults = [judged for judged in verdicts.cases if judged.fault]
    for judged in faults[:_LISTED]:
        yield f"no cause of {judged.case.id} could be searched: {judged.fault}"


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
    return sorted(rows, key=lambda row: row[_FAIL] == "0") if whole else rows


def _rounding(judged: Judged) -> str:
    """Return the rounding, limit or geometry that a case tests: the main part of its aim."""
    parts = judged.case.aim.split("; ")
    return next((part for part in parts if part.startswith(_ROUNDINGS)), parts[0])


def _row(op: str, types: str, level: str, rounding: str, cases: list[Judged]) -> tuple[str, ...]:
    refused = sum(judged.result == Result.REFUSED for judged in cases)
    fails = sum(judged.fails for judged in cases)
    counts = (len(cases), len(cases) - fails - refused, fails, refused)
    return op, types, level, rounding, *(f"{n:,}" for n in counts)
