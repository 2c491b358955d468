"""The reports of `tflq conform diff` and `conform report`.

The report of `tflq conform diff`: as blocks, as a document, and as Markdown for a pull request.

The report of `tflq conform report`: levels, requirements that fail or have no case, and exclusions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tflq.devices.suites.changes import ChangeVerdict, Claim, Computed, KernelChange, RunChange, RunDiff
from tflq.devices.suites.judge import Judged, Response
from tflq.face.report.blocks import Block, CodeBlock, FactLine, Fold, Headline, Report, Section, TableBlock
from tflq.face.report.documents.conform import ClaimDocument, ConformDiffDocument
from tflq.face.report.documents.filling import filled
from tflq.face.report.wording import counted, listed
from tflq.texts import printable, shown

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
#: Other arithmetics that reproduce as much and are named.
_ALSO = 2


def changes_report(found: RunDiff) -> Report:
    """Build the report: the verdict, changed operators with what computed them, and the smallest case of each."""
    names = found.before.target, found.after.target
    about = (CodeBlock(names[0]), " and ", CodeBlock(names[1]))
    title = f"{names[0]} and {names[1]}: tflq conform diff"
    return Report("conform", list(_blocks(found)), about=about, title=title)


def _blocks(found: RunDiff) -> Iterator[Block]:
    subject = f"{shown(found.before.target)} and {shown(found.after.target)}"
    yield Headline(changes_text(found), _STYLES[found.verdict], found.verdict.value.upper(), subject)
    yield from (FactLine(text, "warning") for text in _reservations(found))
    if not found.kernels:
        return
    rows = [_kernel_row(kernel) for kernel in found.kernels]
    yield Section("changes", "What changed", [TableBlock(_COLUMNS, rows, most=_LISTED, rest=_REST)])
    smallest = [(_name(kernel), *_case_row(kernel.smallest)) for kernel in found.kernels]
    yield Section("smallest", "The smallest cases", [TableBlock(_SMALLEST, smallest, most=_LISTED, rest=_REST)])
    for kernel in found.kernels:
        cases = [_whole_row(change) for change in kernel.changes[:_SHOWN]]
        yield Fold(f"{_name(kernel)}: {counted(len(kernel.changes), 'changed case')}", [TableBlock(_CASES, cases)])


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
    others = f" (also {shown(listed(side.others, _ALSO, last=', '))})" if side.others else ""
    return f"{'nearest: ' if side.is_refuted else ''}{shown(side.name)}{others}{whole}"


def _case_row(change: RunChange) -> tuple[str, ...]:
    size = f"{change.size:,}" if change.size else "-"
    return shown(change.after.case.id), size, _said(change.before), _said(change.after)


def _whole_row(change: RunChange) -> tuple[str, ...]:
    name, *rest = _case_row(change)
    return name, shown(change.after.case.aim), *rest


def _said(judged: Judged) -> str:
    """Return what the target did with a case: a difference from the profile, a reason, or that it gives its bits."""
    if judged.answer != Response.RUNS:
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
    return filled(ConformDiffDocument, found)


_LEVELS = (("level", "<"), ("met", "<"), ("pass", ">"), ("fail", ">"), ("no case", ">"), ("excluded", ">"))
_REQUIREMENTS_LISTED = 20


def requirements_report(found: Claim) -> Report:
    """Build the report. Its verdict is the highest level that is met."""
    return Report("conform", list(_requirements_blocks(found)), title=f"{shown(found.target)}: conformance")


def _requirements_blocks(found: Claim) -> Iterator[Block]:
    rows = [
        (one.level, "yes" if one.is_met else "no", *(f"{len(some):,}" for some in _parts(one))) for one in found.levels
    ]
    yield Section("levels", f"Levels, version {found.version}", [TableBlock(_LEVELS, rows)])
    failed = {name: one.level for one in reversed(found.levels) for name in one.failed}
    if failed:
        listed = TableBlock(
            (("requirement that fails", "<"), ("level", "<")), sorted(failed.items()), most=_REQUIREMENTS_LISTED
        )
        yield Section("failed", "Requirements that fail", [listed])
    if found.exclusions:
        entries = [(shown(e.requirement), shown(e.reason), e.date) for e in found.exclusions]
        table = TableBlock((("excluded", "<"), ("reason", "<"), ("since", "<")), entries)
        yield Section("excluded", "What the claim leaves out", [table])
    for pattern in found.unused:
        yield FactLine(f"the exclusion {shown(pattern)} matches no requirement", "warning")
    kept = " with exclusions" if any(one.excluded for one in found.levels if one.is_met) else ""
    text = f"meets {found.met}{kept}" if found.met else "meets no level"
    yield Headline(
        f"{text}, levels of version {found.version}", "good" if found.met else "bad", "", shown(found.target)
    )


def _parts(one: Any) -> Sequence[Sequence[str]]:
    return one.passed, one.failed, one.without_case, one.excluded


def requirements_document(found: Claim) -> ClaimDocument:
    """Return the document: `schemas/claim.schema.json`."""
    return filled(ClaimDocument, found)
