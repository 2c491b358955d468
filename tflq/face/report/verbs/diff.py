"""The report of `tflq diff`: how one model differs from another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tflq.comparison.inspection.model_diff import ModelChange, ModelDiff
from tflq.face.report.blocks import (
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    Columns,
    Graph,
    Headline,
    InText,
    OnPage,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.models import DiffDocument
from tflq.face.report.graph.colouring import Colouring, scale, states
from tflq.face.report.wording import counted

if TYPE_CHECKING:
    from tflq.face.report.graph.drawing import ModelView

#: Changes that text lists unless all are asked for.
_LISTED = 20
#: Kinds of changes that are counted separately.
_KINDS = 6


def diff_report(found: ModelDiff, *, all_changes: bool = True) -> Report:
    """Build the report: the number of changes of each kind, then a row for each change."""
    names = found.first.path or "first", found.second.path or "second"
    return Report(
        "diff",
        list(_blocks(found, names, all_changes)),
        about=(CodeBlock(names[0]), " and ", CodeBlock(names[1])),
        title=f"{names[0]} and {names[1]}: tflq diff",
    )


def _blocks(found: ModelDiff, names: tuple[str, str], all_changes: bool) -> Iterator[Block]:
    yield _verdict(found, names)
    yield _brief(found)
    if not found.changes:
        yield OnPage(lambda view: [_graph(view, found)])
        return
    kinds = Counter(map(_kind, found.changes)).most_common()
    sides = _columns(*names)
    edges = [_row(change) for change in found.changes if not change.op]
    added = [_row(change) for change in found.changes if change.op and change.first is None]
    rows = list(map(_row, found.changes))
    yield InText(
        [Text(_kinds_text(kinds)), TableBlock(_columns("first", "second"), rows, None if all_changes else _LISTED)]
    )
    yield OnPage(
        lambda view: [
            Section("model", "What the models take and give", [TableBlock(sides, edges)]),
            Section("kinds", "What differs", [Bars("what", "differences", [Bar(k, n, f"{n:,}") for k, n in kinds])]),
            _graph(view, found),
            Section("added", f"Only in {names[1]}", [TableBlock(sides, added)]),
            Section("changes", "All differences", [TableBlock(sides, rows, fold=counted(len(rows), "difference"))]),
        ]
    )


def _columns(first: str, second: str) -> Columns:
    return ("operator", "<"), ("differs in", "<"), (first, "<"), (second, "<")


def _verdict(found: ModelDiff, names: tuple[str, str]) -> Headline:
    if not found.changes:
        return Headline("no difference", "good", subject=" and ".join(names))
    touched = len({(c.signature, c.first, c.second) for c in found.changes if c.op})
    edges = "; so does what the models take and give" if any(not c.op for c in found.changes) else ""
    return Headline(f"{touched} operator(s) differ{edges}", "bad", subject=" and ".join(names))


def _brief(found: ModelDiff) -> Brief:
    if not found.changes:
        return Brief("same operators, options, tensors and constants", "Next: .first, .second")
    operator, what, before, after = _row(found.changes[0])
    values = f"{before} -> {after}" if before else after
    where = _kinds_text(Counter(map(_kind, found.changes)).most_common())
    return Brief(where, f"Next: .changes; the first: {operator}, {what}: {values}")


def _kinds_text(kinds: list[tuple[str, int]]) -> str:
    """Return the number of changes of each of the most frequent kinds, and how many more there are."""
    rest = sum(count for _, count in kinds[_KINDS:])
    named = [f"{kind}: {count}" for kind, count in kinds[:_KINDS]]
    return ", ".join([*named, *[f"other: {rest}"] * bool(rest)])


def _kind(change: ModelChange) -> str:
    """Return the kind of a change without its operand, such as "values", "scale" or "derived multiplier"."""
    return re.sub(r"^(input|output) \d+ ", "", change.what) if change.op else "model"


def _row(c: ModelChange) -> tuple[str, str, str, str]:
    """Return the operator in both models, what differs, and its value in each."""
    start = f"{c.signature}: " if c.signature else ""
    if not c.op:
        return f"{start}model", c.what, c.before, c.after
    numbers = dict.fromkeys("-" if n is None else str(n) for n in (c.first, c.second))
    return f"{start}{'/'.join(numbers)} {c.op}", c.what, c.before, c.after


def diff_colourings(view: ModelView, found: ModelDiff) -> list[Colouring]:
    """Return colourings of the first model's operators by the number of changes, and by what they change."""
    changes = _by_operator(found, view.inspection.name)
    operators = range(len(view.inspection.operators))
    numbers = {index: float(len(changes.get(index, ()))) for index in operators}
    texts = {index: counted(int(n), "difference") if n else "the same" for index, n in numbers.items()}
    return [
        scale("differences", numbers, "", texts=texts),
        states("what differs", {index: _state(changes.get(index, [])) for index in operators}),
    ]


def _graph(view: ModelView, found: ModelDiff) -> Graph:
    changes = _by_operator(found, view.inspection.name)
    sides = (("differs in", "<"), ("first", "<"), ("second", "<"))

    def panel(index: int) -> Iterable[Block]:
        yield TableBlock(sides, [_row(change)[1:] for change in changes.get(index, ())])

    return Graph(diff_colourings(view, found), panel, min(changes, default=None))


def _by_operator(found: ModelDiff, signature: str) -> dict[int, list[ModelChange]]:
    """Return the changes by operator of the first model, of the signature that a page draws."""
    changes: dict[int, list[ModelChange]] = {}
    for change in found.changes:
        if change.first is not None and change.signature == signature:
            changes.setdefault(change.first, []).append(change)
    return changes


def _state(changes: list[ModelChange]) -> tuple[str, str]:
    if any(change.second is None for change in changes):
        return "bad", "only here"
    if not changes:
        return "good", "the same"
    stored = any("values" in change.what or "scale" in change.what or "zero point" in change.what for change in changes)
    return ("hot3", "numbers differ") if stored else ("warning", "form differs")


def diff_document(found: ModelDiff) -> DiffDocument:
    """Return the document: `schemas/diff.schema.json`."""
    return filled(DiffDocument, found)
