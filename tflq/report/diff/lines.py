"""The differences of two models in lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tflq.inspection.model_diff import Change, ModelDiff
from tflq.report.layout import Line, table

#: Changes that are listed where not all are asked for.
LISTED = 20


def diff_lines(model_diff: ModelDiff, *, all_changes: bool = True) -> Iterator[Line]:
    """Yield the verdict, the number of changes of each kind, then a row for each change."""
    names = model_diff.first.path or "first", model_diff.second.path or "second"
    if not model_diff.changes:
        yield Line(f"{names[0]} and {names[1]}: no difference", "good")
        return
    touched = len({(c.first, c.second) for c in model_diff.changes if c.op})
    edges = "; so does what the models take and give" if any(not c.op for c in model_diff.changes) else ""
    yield Line(f"{names[0]} and {names[1]}: {touched} operator(s) differ{edges}", "bad")
    kinds = Counter(_kind(c) for c in model_diff.changes)
    yield Line(", ".join(f"{kind}: {count}" for kind, count in kinds.most_common()))
    columns = [("operator", "<"), ("differs in", "<"), (names[0], "<"), (names[1], "<")]
    shown = model_diff.changes if all_changes else model_diff.changes[:LISTED]
    yield from table(columns, [change_row(c) for c in shown])
    if len(shown) < len(model_diff.changes):
        yield Line(f"... and {len(model_diff.changes) - len(shown)} more (--all shows them)", "faint")


def _kind(change: Change) -> str:
    """Return the kind of a change without its operand, such as "values", "scale" or "derived multiplier"."""
    return re.sub(r"^(input|output) \d+ ", "", change.what) if change.op else "model"


def change_row(c: Change) -> tuple[str, str, str, str]:
    """Return a row: the operator in both models, what differs, and its value in each."""
    if not c.op:
        return "model", c.what, c.before, c.after
    numbers = dict.fromkeys("-" if n is None else str(n) for n in (c.first, c.second))
    return f"{'/'.join(numbers)} {c.op}", c.what, c.before, c.after
