"""Names of tensors, short enough to read."""

from __future__ import annotations

from tflq.escaping import shown
from tflq.face.report.blocks import Shortened

#: Characters of a tensor's name.
NAME = 48


def short_name(name: str) -> str:
    """Return the first of the names that converters join, or only its end if it is long."""
    first, joined, _ = name.partition(";")
    return ("…" + first[-NAME:] if len(first) > NAME else first) + (";…" if joined else "")


def brief_name(name: str) -> Shortened:
    """Return the short form of a name with the whole of it, both escaped."""
    return Shortened(shown(short_name(name)), shown(name))
