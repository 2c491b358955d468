"""Lines with a style, tables of aligned columns, and the text of both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TextIO

from tflq.escaping import printable

#: ANSI codes by style.
_CODES = {"good": "1;32", "bad": "1;31", "warning": "33", "strong": "1", "faint": "2", "head": "1"}
_GAP = "  "
#: Characters of a cell beyond which its middle is left out.
CELL = 600


class Line(NamedTuple):
    """One line of a report. `style` is a key of the colour table, or empty."""

    text: str
    style: str = ""


def table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> Iterator[Line]:
    """A head and one line per row; a cell of several lines makes its row as high. Columns are (title, "<" or ">").

    Columns are as wide as they need: text for a file or a pipe is to be searched, not to be admired.
    """
    cells = [[[printable(text, CELL) for text in cell.split("\n")] for cell in row] for row in rows]
    widths = [
        max([len(title), *(len(text) for row in cells for text in row[position])])
        for position, (title, _) in enumerate(columns)
    ]

    def line(texts: Sequence[str]) -> str:
        aligned = (f"{text:{way}{width}}" for text, (_, way), width in zip(texts, columns, widths, strict=True))
        return _GAP.join(aligned).rstrip()

    yield Line(line([title for title, _ in columns]), "head")
    for row in cells:
        for height in range(max(len(cell) for cell in row)):
            yield Line(line([cell[height] if height < len(cell) else "" for cell in row]))


def text_of(lines: Iterable[Line], *, coloured: bool = False) -> str:
    """The lines as text, escaped; in colour where that is wanted."""
    return "".join(
        f"\x1b[{_CODES[style]}m{printable(text)}\x1b[0m\n" if coloured and style else printable(text) + "\n"
        for text, style in lines
    )


def wants_colour(out: TextIO) -> bool:
    """NO_COLOR forbids it, FORCE_COLOR asks for it, else it is for terminals. Source: no-color.org, force-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return out.isatty() and os.environ.get("TERM") != "dumb"


def counted(number: int, noun: str) -> str:
    """Return a number and a noun in the singular or the plural."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
