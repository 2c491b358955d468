"""The differences of two models in lines."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.inspection.model_diff import Change, ModelDiff
from tflq.report.layout import Line, table


def diff_lines(found: ModelDiff) -> Iterator[Line]:
    """The verdict, then one row a change."""
    names = found.first.path or "first", found.second.path or "second"
    if not found.changes:
        yield Line(f"{names[0]} and {names[1]}: no difference", "good")
        return
    touched = len({(c.first, c.second) for c in found.changes if c.op})
    edges = "; so does what the models take and give" if any(not c.op for c in found.changes) else ""
    yield Line(f"{names[0]} and {names[1]}: {touched} operator(s) differ{edges}", "bad")
    columns = [("operator", "<"), ("differs in", "<"), (names[0], "<"), (names[1], "<")]
    yield from table(columns, [change_row(c) for c in found.changes])


def change_row(c: Change) -> tuple[str, str, str, str]:
    """The operator in both models, what differs, and how it is in each."""
    if not c.op:
        return "model", c.what, c.before, c.after
    numbers = dict.fromkeys("-" if n is None else str(n) for n in (c.first, c.second))
    return f"{'/'.join(numbers)} {c.op}", c.what, c.before, c.after
