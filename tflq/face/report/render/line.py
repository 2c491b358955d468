"""One line of a report."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """One line of a report. `style` is a key of the colour table, or empty."""

    text: str
    style: str = ""
