"""Reports as text for a terminal: lines with a style, and tables that fit the width."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TextIO

from tflq.escaping import printable
from tflq.face.report import blocks, pictures
from tflq.face.report.blocks import Block, Columns, Report, plain
from tflq.face.report.render.grid import GAP, Grid
from tflq.face.report.render.line import Line
from tflq.face.report.render.matrix import matrix_lines

#: ANSI codes by style. Colours are of the palette of 256, of middle lightness: they are legible on white and on black.
_CODES = {"good": "1;38;5;28", "bad": "1;38;5;196", "warning": "38;5;130", "strong": "1", "faint": "2", "head": "1"}
#: Lines are never made narrower than this.
NARROWEST = 40
#: Width of a terminal that does not report one.
_USUAL = 80
#: How lines with a command begin, and what continues a command on the next line.
_COMMANDS, _CONTINUED = ("Next: tflq", "  or: tflq"), " \\"
#: Longest cell, in characters; the middle of a longer one is left out.
CELL = 600


def lines_of(report: Report) -> Iterator[Line]:
    """Yield the lines of a report. Blocks for pages only have none."""
    for block in report.blocks:
        yield from _lines(block)


def _lines(block: Block) -> Iterator[Line]:
    match block:
        case blocks.Verdict(style=style):
            yield Line(block.line, style)
        case blocks.Fact(text, style):
            yield Line(plain(text), style)
        case blocks.Text(text, style, indent):
            yield Line(GAP * indent + plain(text), style)
        case blocks.Note(text):
            yield Line(f"note: {text}", "warning")
        case blocks.Gap():
            yield Line("")
        case blocks.Verbatim(text):
            yield from map(Line, text.split("\n"))
        case blocks.Listing(values, style, indent):
            yield from (Line(GAP * indent + plain(value), style) for value in values)
        case blocks.Pairs(pairs):
            yield from table([("", "<"), ("", "<")], [(name, plain(value)) for name, value in pairs])
        case blocks.Table():
            yield from _table_lines(block)
        case pictures.Matrix():
            yield from matrix_lines(block, line_width())
        case blocks.Next(commands):
            for position, command in enumerate(commands):
                yield Line(f"{'  or' if position else 'Next'}: {command}", "strong")
        case blocks.Section() | blocks.InText():
            for part in block.blocks:
                yield from _lines(part)


def _table_lines(block: blocks.Table) -> Iterator[Line]:
    shown, indent = block.rows[: block.most], GAP * block.indent
    if shown:
        for text, style in table(block.columns, [[plain(cell) for cell in row] for row in shown]):
            yield Line(indent + text, style)
    left = len(block.rows) - len(shown)
    if left:
        yield Line(indent + block.rest.format(left=left, shown=len(shown), of=len(block.rows)), "faint")


def table(columns: Columns, rows: Iterable[Sequence[str]]) -> Iterator[Line]:
    """Yield a head and one line for each row, or several if a cell has several.

    Empty columns are left out. On a terminal, or if COLUMNS is set, the table fits the width: values that are the same
    in every row are listed once, below; words wrap, numbers do not; if that is not enough, the last columns of each row
    go to a line below it. In a file or a pipe, columns are as wide as their longest cell, so that the text can be
    searched.
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


def fit(lines: Iterable[Line]) -> Iterator[Line]:
    """Wrap lines that are wider than the terminal between words. A command to type stays one command."""
    width = line_width()
    for line in lines:
        text = printable(line.text)
        if width is None or len(text) <= width:
            yield line
            continue
        end = _CONTINUED if text.startswith(_COMMANDS) else ""
        *parts, last = _divide(text, width - len(end))
        yield from (Line(part + end, line.style) for part in parts)
        yield Line(last, line.style)


def _divide(text: str, width: int) -> Iterator[str]:
    """Yield the parts of a line, indented below the first. Longer words are divided too, paths at their slashes."""
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
    """Return the lines as escaped text, with ANSI colours if `coloured`."""
    return "".join(
        f"\x1b[{_CODES[style]}m{printable(text)}\x1b[0m\n" if coloured and style else printable(text) + "\n"
        for text, style in lines
    )


def wants_colour(out: TextIO) -> bool:
    """Return False with NO_COLOR, True with FORCE_COLOR, else if `out` is a terminal. Source: no-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return out.isatty() and os.environ.get("TERM") != "dumb"
