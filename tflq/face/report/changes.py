"""Changes of releases, as text and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tflq.engine.profiles.history import Change
from tflq.face.report.blocks import Block, Text
from tflq.face.report.documents.shared import ChangeDocument

#: Changes that text lists; a document has all.
_LISTED = 5


def change_blocks(changes: Iterable[Change], one: str, other: str) -> Iterator[Block]:
    """Yield what releases changed between two profiles, a line each; without a change, that both are known."""
    changes = list(changes)
    for change in changes[:_LISTED]:
        where = f"{change.op} ({change.types}), changed between {change.last} and {change.first}"
        yield Text(f"{where}: {one}: {change.before}; {other}: {change.after}")
    if len(changes) > _LISTED:
        yield Text(f"{len(changes) - _LISTED} more changes (--json has all)")
    if not changes:
        yield Text(f"tflq profiles diff {one} {other} lists the operators that the two compute differently")


def changes_document(changes: Iterable[Change]) -> list[ChangeDocument]:
    """Return the changes as rows of a document; `before` is the first profile's formula."""
    return [
        {"op": c.op, "types": c.types, "last": c.last, "first": c.first, "before": c.before, "after": c.after}
        for c in changes
    ]
