"""Lines with a style, tables of aligned columns, and the text of both."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TextIO

from tflq.escaping import printable
from tflq.report.grid import Grid
from tflq.report.line import Line

__all__ = ["Line", "counted", "line_width", "table", "text_of", "wants_colour"]

#: ANSI codes by style.
_CODES = {"good": "1;32", "bad": "1;31", "warning": "33", "strong": "1", "faint": "2", "head": "1"}
#: Lines are never made narrower than this.
NARROWEST = 80
#: Characters of a cell beyond which its middle is left out.
CELL = 600


def table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> Iterator[Line]:
    """A head and one line per row; a cell of several lines makes its row as high. Columns are (title, "<" or ">").

    Columns in which nothing stands are left out. On a terminal, or where COLUMNS says how wide one is, the table fits
    it: values that are the same in every row are listed once, below; words wrap, numbers never; if that is not enough,
    the last columns go to a line of their own below each row. In a file or a pipe, columns are as wide as they need,
    so that the text can be searched.
    """
    cells = [[[printable(text, CELL) for text in cell.split("\n")] for cell in row] for row in rows]
    grid = Grid([title for title, _ in columns], [way for _, way in columns], cells).without_empty_columns()
    width = line_width()
    everywhere: list[str] = []
    if width is not None and grid.width > width:
        grid, everywhere = grid.without_constant_columns(width)
        grid = grid.wrapped(width)
    yield from grid.lines(width)
    if everywhere:
        text = f"in every row: {', '.join(everywhere)}"
        yield from (Line(part, "faint") for part in wrap(text, width or len(text), break_long_words=False))


def line_width() -> int | None:
    """Return the width of lines in characters, at least 80: COLUMNS, else the terminal's; None without either."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return max(NARROWEST, int(columns))
    if sys.stdout is not None and sys.stdout.isatty():
        return max(NARROWEST, shutil.get_terminal_size((NARROWEST, 24)).columns)
    return None


def text_of(lines: Iterable[Line], *, coloured: bool = False) -> str:
    """The lines as text, escaped; in colour where that is wanted."""
    return "".join(
        f"\x1b[{_CODES[style]}m{printable(text)}\x1b[0m\n" if coloured and style else printable(text) + "\n"
        for text, style in lines
    )


def wants_colour(out: TextIO) -> bool:
    """Whether to colour: never with NO_COLOR, always with FORCE_COLOR, else on terminals. Source: no-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return out.isatty() and os.environ.get("TERM") != "dumb"


def counted(number: int, noun: str) -> str:
    """Return a number and a noun in the singular or the plural."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
