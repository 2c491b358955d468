"""The differences of two models in lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tflq.inspection.model_diff import Change, ModelDiff
from tflq.report.render.line import Line
from tflq.report.render.text import table

#: Changes that are listed where not all are asked for.
LISTED = 20
#: Kinds of changes that are counted each for itself.
KINDS = 6


def diff_lines(model_diff: ModelDiff, *, all_changes: bool = True) -> Iterator[Line]:
    """Yield the verdict, the number of changes of each kind, then a row for each change."""
    yield verdict_line(model_diff)
    if not model_diff.changes:
        return
    yield Line(kinds_text(model_diff))
    columns = [("operator", "<"), ("differs in", "<"), ("first", "<"), ("second", "<")]
    shown = model_diff.changes if all_changes else model_diff.changes[:LISTED]
    yield from table(columns, [change_row(c) for c in shown])
    if len(shown) < len(model_diff.changes):
        yield Line(f"... and {len(model_diff.changes) - len(shown)} more (--all shows them)", "faint")


def verdict_line(model_diff: ModelDiff) -> Line:
    """Return how many operators differ, and whether what the models take and give does."""
    names = " and ".join(_names(model_diff))
    if not model_diff.changes:
        return Line(f"{names}: no difference", "good")
    touched = len({(c.first, c.second) for c in model_diff.changes if c.op})
    edges = "; so does what the models take and give" if any(not c.op for c in model_diff.changes) else ""
    return Line(f"{names}: {touched} operator(s) differ{edges}", "bad")


def kinds_text(model_diff: ModelDiff) -> str:
    """Return the number of changes of each of the most frequent kinds, and how many more there are."""
    kinds = Counter(_kind(c) for c in model_diff.changes).most_common()
    rest = sum(count for _, count in kinds[KINDS:])
    named = [f"{kind}: {count}" for kind, count in kinds[:KINDS]]
    return ", ".join([*named, *[f"other: {rest}"] * bool(rest)])


def _names(model_diff: ModelDiff) -> tuple[str, str]:
    return model_diff.first.path or "first", model_diff.second.path or "second"


def _kind(change: Change) -> str:
    """Return the kind of a change without its operand, such as "values", "scale" or "derived multiplier"."""
    return re.sub(r"^(input|output) \d+ ", "", change.what) if change.op else "model"


def change_row(c: Change) -> tuple[str, str, str, str]:
    """Return a row: the operator in both models, what differs, and its value in each."""
    if not c.op:
        return "model", c.what, c.before, c.after
    numbers = dict.fromkeys("-" if n is None else str(n) for n in (c.first, c.second))
    return f"{'/'.join(numbers)} {c.op}", c.what, c.before, c.after
