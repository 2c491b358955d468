"""The report of `tflq conform diff`: as blocks, as a document, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.devices.conformance.changes import Answer, Change, ChangeVerdict, Computed, KernelChange, RunDiff, answer_of
from tflq.devices.conformance.judging import Judged, Verdicts
from tflq.escaping import printable, shown
from tflq.face.report.blocks import Block, Code, Fact, Fold, Report, Section, Table, Verdict
from tflq.face.report.documents.conform_diff import (
    CaseChangeDocument,
    ConformDiffDocument,
    JudgedDocument,
    OperatorDocument,
    RunDocument,
)
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.numbers import counted

_STYLES = {
    ChangeVerdict.SAME: "good",
    ChangeVerdict.DIFFERS: "bad",
    ChangeVerdict.INCOMPLETE: "warning",
    ChangeVerdict.NOTHING: "bad",
}
_COLUMNS = (("operator", "<"), ("changed", ">"), ("with", "<"), ("before", "<"), ("after", "<"))
_SMALLEST = (("smallest case of", "<"), ("case", "<"), ("bytes", ">"), ("before", "<"), ("after", "<"))
_CASES = (("case", "<"), ("there for", "<"), ("bytes", ">"), ("before", "<"), ("after", "<"))
#: Kernels that text lists, and changed cases of each that a page shows.
_LISTED, _SHOWN = 20, 100
_REST = "and {left} more (--json has all)"


def changes_report(found: RunDiff) -> Report:
    """Build the report: the verdict, changed operators with what computed them, and the smallest case of each."""
    names = found.before.target, found.after.target
    about = (Code(names[0]), " and ", Code(names[1]))
    title = f"{names[0]} and {names[1]}: tflq conform diff"
    return Report("conform", list(_blocks(found)), about=about, title=title)


def _blocks(found: RunDiff) -> Iterator[Block]:
    subject = f"{shown(found.before.target)} and {shown(found.after.target)}"
    yield Verdict(changes_text(found), _STYLES[found.verdict], found.verdict.value.upper(), subject)
    yield from (Fact(text, "warning") for text in _reservations(found))
    if not found.kernels:
        return
    rows = [_kernel_row(kernel) for kernel in found.kernels]
    yield Section("changes", "What changed", [Table(_COLUMNS, rows, most=_LISTED, rest=_REST)])
    smallest = [(_name(kernel), *_case_row(kernel.smallest)) for kernel in found.kernels]
    yield Section("smallest", "The smallest cases", [Table(_SMALLEST, smallest, most=_LISTED, rest=_REST)])
    for kernel in found.kernels:
        cases = [_whole_row(change) for change in kernel.changes[:_SHOWN]]
        yield Fold(f"{_name(kernel)}: {counted(len(kernel.changes), 'changed case')}", [Table(_CASES, cases)])


def changes_text(found: RunDiff) -> str:
    """Return the counts in one line."""
    parts = [f"{counted(len(found.kernels), 'operator')} changed ({counted(found.changed, 'case')})"]
    parts = parts if found.kernels else []
    parts.append(f"{counted(found.same, 'case')} with the same bits")
    if found.idle:
        parts.append(f"{found.idle:,} that neither runs")
    if found.only_before or found.only_after:
        parts.append(f"in one run only: {found.only_before:,} before, {found.only_after:,} after")
    return ", ".join(parts)


def _reservations(found: RunDiff) -> Iterator[str]:
    """Yield the reasons why the runs were not compared in full."""
    for word, run in (("before", found.before), ("after", found.after)):
        if run.left:
            yield f"the run {word} was interrupted: {counted(run.left, 'case')} were not judged"
        yield from (f"after its last answer the target {word} ended with {shown(end)}" for end in run.endings[:1])


def _name(kernel: KernelChange) -> str:
    return shown(f"{kernel.op} {kernel.types}")


def _kernel_row(kernel: KernelChange) -> tuple[str, ...]:
    counts = f"{len(kernel.changes):,} of {kernel.cases:,}"
    return _name(kernel), counts, options_text(kernel), computed_text(kernel.before), computed_text(kernel.after)


def options_text(kernel: KernelChange) -> str:
    """Return the options that changed cases have, and the kinds of changes other than bits."""
    texts = [f"{count:,} {kind}" for kind, count in kernel.kinds.items() if kind != "bits"]
    if len(kernel.changes) == kernel.cases:
        texts.append("all options")
    elif kernel.options.names:
        options = kernel.options
        names = (" or " if options.is_any else ", ").join(options.names)
        texts.append(("only " if options.is_only else "") + shown(names))
    return "; ".join(texts)


def computed_text(side: Computed) -> str:
    """Return the arithmetic of one side with the number of changed cases that it reproduces, if these are not all."""
    if not side.cases:
        return "not run"
    if not side.name:
        return f"unknown; {shown(side.place)} ({side.placed:,} of {side.cases:,})" if side.place else "unknown"
    whole = "" if side.reproduced == side.cases else f" ({side.reproduced:,} of {side.cases:,})"
    others = f" (also {len(side.others):,} more)" if side.others else ""
    return f"{'nearest: ' if side.is_refuted else ''}{shown(side.name)}{others}{whole}"


def _case_row(change: Change) -> tuple[str, ...]:
    size = f"{change.size:,}" if change.size else "-"
    return shown(change.after.case.id), size, _said(change.before), _said(change.after)


def _whole_row(change: Change) -> tuple[str, ...]:
    name, *rest = _case_row(change)
    return name, shown(change.after.case.aim), *rest


def _said(judged: Judged) -> str:
    """Return what the target did with a case: a difference from the profile, a reason, or that it gives its bits."""
    if answer_of(judged) != Answer.RUNS:
        return shown(f"{judged.result.value}: {judged.reason}")
    return shown(judged.reason) or "as expected"


def changes_markdown(found: RunDiff) -> str:
    """Return the report as Markdown: a headline, and a table of changed operators."""
    names = f"{_code(found.before.target)} → {_code(found.after.target)}"
    lines = [f"### {found.verdict.value.upper()}: {changes_text(found)}", "", names]
    lines += [f"- {_cell(text)}" for text in _reservations(found)]
    if found.kernels:
        lines += ["", "| operator | changed | with | before | after | smallest case |", "|---|---|---|---|---|---|"]
    for kernel in found.kernels:
        row = [*_kernel_row(kernel), f"{kernel.smallest.after.case.id}, {kernel.smallest.size:,} bytes"]
        lines.append(f"| {' | '.join(map(_cell, row))} |")
    if found.kernels:
        lines += ["", "<details><summary>The smallest cases</summary>", ""]
        for kernel in found.kernels:
            first, second = (_said(one) for one in (kernel.smallest.before, kernel.smallest.after))
            lines.append(f"- {_cell(_name(kernel))}: {_cell(first)} → {_cell(second)}")
        lines += ["", "</details>"]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return text that cannot end a cell of a table, nor begin markup."""
    return "".join(f"\\{c}" if c in "\\|`*_<>[]" else c for c in printable(text))


def _code(text: str) -> str:
    return f"`{printable(text).replace('`', chr(39))}`"


def changes_document(found: RunDiff) -> ConformDiffDocument:
    """Return the document: `schemas/conform-diff.schema.json`."""
    return {
        "schema": "tflq/conform-diff/1",
        "verdict": found.verdict,
        "before": _side_document(found.before),
        "after": _side_document(found.after),
        "same": found.same,
        "neither_runs": found.idle,
        "only_before": found.only_before,
        "only_after": found.only_after,
        "changed": found.changed,
        "operators": [_kernel_document(kernel) for kernel in found.kernels],
    }


def _side_document(run: Verdicts) -> RunDocument:
    return {
        "target": run.target,
        "profile": run.profile,
        "level": run.level,
        "suite": run.suite,
        "left": run.left,
        "made": {"seed": run.seed, "version": run.version},
    }


def _kernel_document(kernel: KernelChange) -> OperatorDocument:
    return {
        "op": kernel.op,
        "types": kernel.types,
        "cases": kernel.cases,
        "kinds": kernel.kinds,
        "options": fields_of(kernel.options),
        "before": fields_of(kernel.before),
        "after": fields_of(kernel.after),
        "changes": [_change_document(change) for change in kernel.changes],
    }


def _change_document(change: Change) -> CaseChangeDocument:
    return {
        "digest": change.after.digest,
        "aim": change.after.case.aim,
        "size": change.size,
        "before": _judged_document(change.before),
        "after": _judged_document(change.after),
    }


def _judged_document(judged: Judged) -> JudgedDocument:
    return {
        "id": judged.case.id,
        "answer": answer_of(judged),
        "result": judged.result,
        "reason": judged.reason or None,
        "outputs": judged.outputs or None,
        "causes": list(judged.causes),
    }
