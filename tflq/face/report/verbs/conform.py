"""The reports of `tflq conform`: verdicts as text, page, document, JUnit and rows (JSON lines, or Parquet)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from shlex import quote
from typing import Any
from xml.etree import ElementTree

from tflq.comparison.inspection.difference import Difference
from tflq.devices.suites.causes import Unexplained, explained_groups, joint_causes, refusals, unexplained
from tflq.devices.suites.judge import CaseResult, Judged, SuiteVerdict, Verdicts
from tflq.devices.suites.make import Suite
from tflq.devices.suites.target import Skeleton
from tflq.errors import OptionError
from tflq.face.report.blocks import (
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Fold,
    Gap,
    Headline,
    Inline,
    InText,
    Next,
    Report,
    Section,
    Styled,
    TableBlock,
    Text,
)
from tflq.face.report.documents.conform import CaseDifferenceDocument, CaseDocument, ConformDocument, RefusalDocument
from tflq.face.report.documents.filling import filled
from tflq.face.report.issues import mark_of_case
from tflq.face.report.joint import certainty_text, counts_text, joint_blocks, nearest_document
from tflq.face.report.several import JUnitCase, junit_suite
from tflq.face.report.wording import counted, listed
from tflq.model.storage.output import written
from tflq.texts import printable, shown


def verdict_document(verdicts: Verdicts) -> ConformDocument:
    """Return every case with its result; what passes has no reason."""
    groups, failing = explained_groups(verdicts.cases)
    return filled(
        ConformDocument,
        verdicts,
        explained={"groups": groups, "of": failing},
        counts={result.value: verdicts.count(result) for result in CaseResult},
        joint=joint_causes(verdicts.cases, verdicts.joint),
        nearest=nearest_document(verdicts.joint),
        refusals=[filled(RefusalDocument, one, cases=len(one.cases)) for one in refusals(verdicts.cases)],
        cases=[case_document(judged) for judged in verdicts.cases],
    )


def case_document(judged: Judged) -> CaseDocument:
    """Return a case with its result, and how the outputs differ that were compared."""
    difference = judged.difference
    found = None if difference is None else filled(CaseDifferenceDocument, difference, first=_first(difference))
    return filled(CaseDocument, judged, difference=found, mark=mark_of_case(judged))


def _first(difference: Difference) -> Any:
    return None if difference.first is None else asdict(difference.first)


#: Cases of one operator by the type of the first operand.
_Cells = dict[str, list[Judged]]


def picture(verdicts: Verdicts) -> Section:
    """Return operators that fail against types, those with most failures first, then refused ones, then the others."""
    operators: dict[str, _Cells] = {}
    for judged in verdicts.cases:
        operators.setdefault(judged.case.op, {}).setdefault(_first_type(judged), []).append(judged)
    passing = sorted(op for op, cells in operators.items() if all(map(_pass, cells.values())))
    left = sorted((op for op in operators if op not in passing), key=lambda op: (-_failures(operators[op]), op))
    failing = [op for op in left if _failures(operators[op])]
    refused = [op for op in left if op not in failing]
    return Section("picture", "Operators by types", list(_blocks(operators, failing, refused, passing)))


def _blocks(
    operators: dict[str, _Cells], failing: Sequence[str], refused: Sequence[str], passing: Sequence[str]
) -> Iterator[Block]:
    if failing:
        note = Text("failing of all cases, by the type of the first operand; ✓ where all pass", "faint")
        summary = f"{counted(len(failing), 'operator')} with other results"
        yield Fold(summary, [_table(operators, failing), note], opened=True)
    if refused:
        summary = f"{counted(len(refused), 'operator')} refused for some types, the same bits for the others"
        yield Fold(summary, [_table(operators, refused)])
    if passing:
        cases = sum(len(cell) for op in passing for cell in operators[op].values())
        verb = "passes" if len(passing) == 1 else "pass"
        summary = f"{counted(len(passing), 'operator')} {verb} in all of {counted(cases, 'case')}"
        yield Fold(summary, [Text(", ".join(passing), "good")])


def _table(operators: dict[str, _Cells], names: Sequence[str]) -> TableBlock:
    types = sorted({type_ for op in names for type_ in operators[op]})
    rows = [[op, *(_cell(operators[op].get(type_, ())) for type_ in types)] for op in names]
    return TableBlock([("operator", "="), *((type_, ">") for type_ in types)], rows)


def _first_type(judged: Judged) -> str:
    return judged.case.types.replace("->", " ").split()[0] if judged.case.types.strip("-> ") else "none"


def _pass(cases: Sequence[Judged]) -> bool:
    return all(judged.result == CaseResult.PASSES for judged in cases)


def _failures(cells: _Cells) -> int:
    return sum(judged.fails for cases in cells.values() for judged in cases)


def _cell(cases: Sequence[Judged]) -> Inline:
    """Return the failing cases of all, or what else there is."""
    if not cases:
        return ""
    fails = sum(judged.fails for judged in cases)
    if fails:
        return Styled(f"{fails:,} of {len(cases):,}", "bad")
    if _pass(cases):
        return Styled(f"✓ {len(cases):,}", "good")
    refused = sum(judged.result == CaseResult.REFUSED for judged in cases)
    return Styled(f"{refused:,} refused", "soft")


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
_BARS = {CaseResult.PASSES: "good", CaseResult.REFUSED: "unknown"}


def suite_report(path: str, suite: Suite) -> Report:
    """Build the report of a suite that was written to `path`."""
    only = f", only {', '.join(suite.ops)}" if suite.ops else ""
    return Report("conform", [Headline(f"{len(suite.cases):,} cases of {suite.profile}{only}", "", subject=path)])


def packed_report(suite: str, folder: str, cases: int) -> Report:
    """Build the report of the cases of a suite that were unpacked into a folder."""
    steps = Next([f"fill it, then tflq conform check {quote(suite)} {quote(folder)}"])
    return Report("conform", [Headline(f"{cases:,} cases", "", subject=folder), steps])


def skeleton_report(skeleton: Skeleton) -> Report:
    """Build the report of a target's skeleton that was written."""
    steps = [skeleton.build] if skeleton.build else []
    steps += ["tflq conform make -o suite.npz --level smoke"]
    steps += [f"tflq conform run suite.npz --target {quote(skeleton.command)}"]
    return Report("conform", [Headline("a target that runs RESHAPE", "", subject=skeleton.path), Next(steps)])


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
    about = (CodeBlock(verdicts.target), " ", CodeBlock(suite), f" level {verdicts.level}")
    blocks = list(_report_blocks(verdicts, suite, work, again, python, has_table=has_table))
    return Report("conform", blocks, about=about, title=f"{verdicts.target}: tflq conform")


def conform_card(verdicts: Verdicts) -> Report:
    """Build the report of a target for a console or a notebook."""
    first = next((one for one in verdicts.failing), None)
    where = f"First: {first.case.id}: {first.reason}" if first is not None else _counts_text(verdicts)
    report = conform_report(verdicts, "SUITE")
    return replace(report, blocks=[*report.blocks, Brief(where, "Next: .cases, .failing, .joint")])


def _report_blocks(
    verdicts: Verdicts, suite: str, work: str | None, again: str, python: str | None, *, has_table: bool
) -> Iterator[Block]:
    failing = sorted(verdicts.failing, key=lambda judged: (judged.result != CaseResult.DIFFERS, not judged.causes))
    word, style = verdicts.verdict.value.upper(), _STYLES[verdicts.verdict]
    yield Headline(_counts_text(verdicts), style, word, verdicts.target)
    if verdicts.left:
        yield FactLine(
            f"interrupted: {verdicts.left:,} of {counted(_all(verdicts), 'case')} were not judged", "warning"
        )
    if verdicts.ops:
        yield FactLine(f"only cases of {', '.join(map(shown, verdicts.ops))}")
    yield from (
        FactLine(f"after its last answer the target ended with {end}", "bad") for end in verdicts.endings[:_LISTED]
    )
    yield _results(verdicts)
    yield picture(verdicts)
    if failing:
        yield Section("causes", "Causes", list(_cause_blocks(verdicts)))
    yield from _refusals(verdicts)
    yield Next(_next(verdicts, suite, work, again, python, has_table=has_table))
    if failing:
        yield Section("failing", "Failing cases", [InText([_list(failing)] if has_table else []), *_cases(failing)])
    every = TableBlock(_COLUMNS, _rows(verdicts, whole=True))
    rows = [Gap(), _table_of_rows(_rows(verdicts))] if has_table else []
    yield Section("operators", "Operators", [InText(rows), Fold("every type and level", [every])])


def _table_of_rows(rows: Sequence[tuple[str, ...]]) -> TableBlock:
    """Return the rows, those last and only counted in text in which every case is refused."""
    ordered = sorted(rows, key=lambda row: row[-1] == row[_FAIL - 2])
    refused = sum(row[-1] == row[_FAIL - 2] for row in rows)
    rest = "and {left} rows in which every case is refused (--json has all)"
    return TableBlock(_COLUMNS, ordered, most=max(1, len(rows) - refused), rest=rest)


def _failures_first() -> list[CaseResult]:
    """Return the results of cases: failures, then refusals, then passes."""
    return sorted(CaseResult, key=lambda result: (result == CaseResult.PASSES, result == CaseResult.REFUSED))


def _all(verdicts: Verdicts) -> int:
    return verdicts.left + len(verdicts.cases)


def _cause_blocks(verdicts: Verdicts) -> Iterator[Block]:
    """Yield the joint causes, the failing cases without a cause, and how many groups were searched."""
    yield from joint_blocks(joint_causes(verdicts.cases, verdicts.joint))
    left = unexplained(verdicts.cases, verdicts.joint)
    if left:
        columns = (("no cause known", "<"), ("result", "<"), ("failing", ">"), ("look at", "<"), ("as", "<"))
        rows = [(f"{g.op} {g.types}", g.result.value, f"{g.failing:,}", g.first, _reason(g)) for g in left]
        yield TableBlock(columns, rows, most=_CAUSES, rest="and {left} more (--table lists all cases)")
    yield from (Text(text, "faint") for text in cause_texts(verdicts))


def _refusals(verdicts: Verdicts) -> Iterator[Block]:
    groups = refusals(verdicts.cases)
    if groups:
        rows = [(f"{len(g.cases):,}", g.reason, listed(g.operators, 3, last=", ")) for g in groups]
        columns = (("refused", ">"), ("reason of the first case", "<"), ("operators", "<"))
        table = TableBlock(columns, rows, most=_CAUSES, rest="and {left} more reasons (--json has all)")
        yield Section("refused", "Refused, by reason", [table])


def _reason(group: Unexplained) -> str:
    return group.reason + (f"; nearest: {group.nearest}" if group.nearest else "")


def _next(
    verdicts: Verdicts, suite: str, work: str | None, again: str, python: str | None, *, has_table: bool
) -> list[str]:
    """Return the commands that lead on, the most useful one first."""
    asked = again or f"tflq conform run {quote(suite)} --target {quote(verdicts.target)}"
    asked += f" --ops {quote(','.join(verdicts.ops))}" if verdicts.ops and not again else ""
    asked += f" --python {quote(python)}" if python is not None and not again else ""
    kept = work or "WORK"
    commands = []
    if verdicts.left and not again:
        commands.append(f"{asked} --work {quote(kept)}")
    differing = next((one for one in verdicts.failing if one.result == CaseResult.DIFFERS), None)
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


def _list(failing: Sequence[Judged]) -> TableBlock:
    rest = "and {left} more failing cases; --json and --junit have all"
    return TableBlock(_FAILING, [_row_of(one) for one in failing], most=_LISTED, rest=rest)


def _cases(failing: Sequence[Judged]) -> Iterator[Block]:
    """Yield a table for each result, for pages: cases that differ are apart from those without an answer."""
    for result in CaseResult:
        rows = [_row_of(one) for one in failing if one.result == result]
        if rows:
            title = f"{result.value}: {counted(len(rows), 'case')}"
            title += f", the first {_SHOWN}" if len(rows) > _SHOWN else ""
            yield Fold(title, [TableBlock(_FAILING, rows[:_SHOWN])])


def verdict_text(verdicts: Verdicts) -> str:
    """Return the verdict with all counts in one line."""
    return f"{verdicts.verdict.value.upper()} {verdicts.target}: {_counts_text(verdicts)}"


def _counts_text(verdicts: Verdicts) -> str:
    refused, failing = verdicts.count(CaseResult.REFUSED), len(verdicts.failing)
    right = sum(j.case.is_refused and j.result == CaseResult.PASSES for j in verdicts.cases)
    judged = len(verdicts.cases) - refused - right
    count, verb = (failing, "fail") if failing else (judged, "pass")
    beside = []
    limit = "" if verdicts.most_refused is None else f", {verdicts.most_refused:,} allowed"
    if refused or limit:
        beside.append(f"{refused:,} not supported by the target{limit}")
    if right:
        beside.append(f"{right:,} must-refuse passed")
    if verdicts.endings:
        beside.append(f"{counted(len(verdicts.endings), 'call')} failed after the last answer")
    text = f"{count:,} of {counted(judged, 'case')} {verb}{'es' * (count == 1)} against {verdicts.profile}"
    if not judged:
        text = f"no case was compared with {verdicts.profile}"
    return text + (f" ({', '.join(beside)})" if beside else "")


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
    refused = sum(judged.result == CaseResult.REFUSED for judged in cases)
    fails = sum(judged.fails for judged in cases)
    counts = (len(cases), len(cases) - fails - refused, fails, refused)
    return op, types, level, rounding, *(f"{n:,}" for n in counts)


def junit(verdicts: Verdicts) -> ElementTree.Element:
    """Return the test suite. An error of the whole run has a test case of its own."""
    facts = {"verdict": verdicts.verdict.value, "compared": f"{verdicts.compared} of {verdicts.runnable} cases"}
    for number, cause in enumerate(joint_causes(verdicts.cases, verdicts.joint), 1):
        known = certainty_text(cause)
        facts[f"joint cause {number}"] = f"{cause.name}: {counts_text(cause)} that fail{known and f'; {known}'}"
    cases = list(map(_junit_case, verdicts.cases))
    if verdicts.rest != SuiteVerdict.PASSES:
        cases.append(JUnitCase("target", "the run as a whole", "error", verdict_text(verdicts), verdicts.endings))
    return junit_suite(f"tflq conform {verdicts.target} against {verdicts.profile}", cases, facts)


def _junit_case(judged: Judged) -> JUnitCase:
    case = judged.case
    classname = printable(f"{case.op} {case.types}")
    if judged.result == CaseResult.REFUSED:
        return JUnitCase(classname, case.id, "skipped", judged.reason)
    if not judged.fails:
        return JUnitCase(classname, case.id)
    lines = [f"there for: {case.aim}", *(f"reproduced by: {cause}" for cause in judged.causes)]
    return JUnitCase(classname, case.id, "failure", f"{judged.result.value}: {judged.reason}", lines)


#: Rows of a group of a Parquet file.
_GROUP = 10_000


def row(judged: Judged) -> dict[str, Any]:
    """Return a case as plain values; counts and distances are None if no elements were compared."""
    flat: dict[str, Any] = {**case_document(judged)}
    difference = flat.pop("difference") or {}
    return flat | {name: difference.get(name) for name in ("elements", "differing", "largest", "unit")}


def write_rows(path: str, cases: Iterable[Judged]) -> None:
    """Write a row a case: Parquet where the name ends in .parquet, else JSON lines.

    Raises:
        FileAccessError: The path cannot be written.
        OptionError: The extra `parquet` is not installed.
    """
    if path.endswith(".parquet"):
        _write_parquet(path, iter(cases))
        return
    with written(path) as file:
        file.writelines(json.dumps(row(judged)).encode() + b"\n" for judged in cases)


def _write_parquet(path: str, cases: Iterator[Judged]) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise OptionError(f"{path}: Parquet needs the extra parquet: pip install 'tflq[parquet]'") from error
    texts, numbers = pa.string(), pa.int64()
    kinds = dict.fromkeys(
        ("id", "op", "types", "level", "aim", "result", "reason", "unit", "fault", "mark", "digest", "outputs"), texts
    )
    kinds |= dict.fromkeys(("tells", "causes"), pa.list_(texts))
    kinds |= dict.fromkeys(("must_be_refused", "is_explained"), pa.bool_())
    kinds |= dict.fromkeys(("sample", "size", "elements", "differing", "largest"), numbers)
    schema = pa.schema(list(kinds.items()))
    with written(path) as file, parquet.ParquetWriter(file, schema) as writer:
        while group := [row(judged) for judged in islice(cases, _GROUP)]:
            writer.write_table(pa.Table.from_pylist(group, schema))
