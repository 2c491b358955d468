"""Lines with a style, tables of aligned columns, and the text of both."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TextIO

from tflq.escaping import printable
from tflq.report.grid import GAP, Grid
from tflq.report.line import Line

__all__ = ["Line", "counted", "fitted", "line_width", "table", "text_of", "wants_colour"]

#: ANSI codes by style.
_CODES = {"good": "1;32", "bad": "1;31", "warning": "33", "strong": "1", "faint": "2", "head": "1"}
#: Lines are never made narrower than this.
NARROWEST = 60
#: The width of a terminal that does not say how wide it is.
_USUAL = 80
#: How lines begin that hold a command to type, and what the shell takes for its continuation.
_COMMANDS, _CONTINUED = ("Next: tflq", "  or: tflq"), " \\"
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
    """Return the width of lines, at least NARROWEST: COLUMNS, else the terminal's; None without either."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return max(NARROWEST, int(columns))
    if sys.stdout is not None and sys.stdout.isatty():
        return max(NARROWEST, shutil.get_terminal_size((_USUAL, 24)).columns)
    return None


def fitted(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines, those that are wider than the terminal divided between words; a command to type stays one command."""
    width = line_width()
    for line in lines:
        text = printable(line.text)
        if width is None or len(text) <= width:
            yield line
            continue
        end = _CONTINUED if text.startswith(_COMMANDS) else ""
        *parts, last = _divided(text, width - len(end))
        yield from (Line(part + end, line.style) for part in parts)
        yield Line(last, line.style)


def _divided(text: str, width: int) -> Iterator[str]:
    """Parts of a line, continued below its indent; words that have no room are divided too, names at their slashes."""
    begin = text[: len(text) - len(text.lstrip())][: width // 4]
    below = begin + GAP * 2
    for part in wrap(
        text.strip(),
        width,
        initial_indent=begin,
        subsequent_indent=below,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        while len(part) > width:
            at = max(part.rfind(mark, len(below) + 1, width) for mark in ";/") + 1 or width
            yield part[:at]
            part = below + part[at:]
        yield part


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
