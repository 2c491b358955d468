"""Reports as text for a terminal: lines with a style, and tables that fit the width.

One line of a report.

A table as a value: cells in columns, made narrower step by step, and its lines.

A matrix of profiles and operators in a terminal: a line for each row, a character for each column.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple, TextIO

from tflq.face.report import blocks, matrices
from tflq.face.report.blocks import Block, Columns, Report, plain
from tflq.face.report.matrices import MatrixBlock, MatrixColumn
from tflq.face.report.wording import counted, listed
from tflq.texts import printable


class StyledLine(NamedTuple):
    """One line of a report. `style` is a key of the colour table, or empty."""

    text: str
    style: str = ""


GAP = "  "
#: Begins the lines that continue a row.
INDENT = " " * 4
#: Words of more characters lose their middle where a table has to be narrower.
LONGEST_WORD = 24

#: A cell: its lines.
Cell = list[str]


@dataclass(frozen=True, slots=True)
class Grid:
    """Titles, the sides to which columns are aligned, and rows of cells.

    ">" is right, of numbers; "<" left, of words, between which lines may be divided; "=" left, of what stays whole.
    """

    titles: Sequence[str]
    ways: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    @property
    def widths(self) -> list[int]:
        """The characters that each column needs."""
        return [
            max([len(title), *(len(text) for row in self.rows for text in row[k])])
            for k, title in enumerate(self.titles)
        ]

    @property
    def width(self) -> int:
        """The characters of a line."""
        return sum(self.widths) + len(GAP) * max(len(self.titles) - 1, 0)

    def only(self, columns: Sequence[int]) -> Grid:
        """Return the grid with these columns."""
        rows = [[row[k] for k in columns] for row in self.rows]
        return Grid([self.titles[k] for k in columns], [self.ways[k] for k in columns], rows)

    def without_empty_columns(self) -> Grid:
        """Return the grid without empty columns."""
        if not self.rows:
            return self
        return self.only([k for k in range(len(self.titles)) if any(any(row[k]) for row in self.rows)])

    def without_constant_columns(self, width: int) -> tuple[Grid, list[str]]:
        """Return the grid without columns of equal cells, dropped from the last on until it fits; and their texts."""
        grid, said = self, []
        for k in reversed(range(1, len(self.titles))):
            same = len(self.rows) > 1 and all(row[k] == self.rows[0][k] for row in self.rows)
            if same and grid.width > width:
                said.append(f"{self.titles[k]} {' '.join(self.rows[0][k])}")
                kept = [j for j, title in enumerate(grid.titles) if title != self.titles[k]]
                grid = grid.only(kept)
        return grid, said

    def wrapped(self, width: int) -> Grid:
        """Return the grid with the widest columns of words wrapped; unchanged if even that does not fit."""
        widths = self.widths
        least = [self._least(k) for k in range(len(self.titles))]
        excess = self.width - width
        if sum(widths) - sum(least) < excess:
            return self
        while excess > 0 and (open_ := [k for k in range(len(widths)) if widths[k] > least[k]]):
            widest = max(open_, key=lambda k: widths[k])
            widths[widest] -= 1
            excess -= 1
        narrow = [width if way == "<" else None for way, width in zip(self.ways, widths, strict=True)]
        rows = [[_wrap(cell, width) for cell, width in zip(row, narrow, strict=True)] for row in self.rows]
        return Grid(self.titles, self.ways, rows)

    def _least(self, k: int) -> int:
        """Return the least width of a column: its own for numbers, that of the longest word for words."""
        if self.ways[k] != "<":
            return self.widths[k]
        words = [word for row in self.rows for text in row[k] for word in _words(text)]
        return max([len(self.titles[k]), *(min(len(word), LONGEST_WORD) for word in words)])

    def lines(self, width: int | None) -> Iterator[StyledLine]:
        """Yield the head and the rows; if they are wider than `width`, the last columns of a row go below it."""
        count = len(self.titles)
        while width is not None and count > 1 and self.only(range(count)).wrapped(width).width > width:
            count -= 1
        if width is not None and count < len(self.titles):  # there is room below: nothing needs to wrap
            while count > 2 and self.only(range(count)).width > width:
                count -= 1
        first, rest = self.only(range(count)), self.only(range(count, len(self.titles)))
        if width is not None:
            first = first.wrapped(width)
        widths = first.widths
        yield StyledLine(_line(first.titles, first.ways, widths), "head")
        for row, below in zip(first.rows, rest.rows, strict=True):
            for height in range(max(len(cell) for cell in row)):
                yield StyledLine(
                    _line([cell[height] if height < len(cell) else "" for cell in row], first.ways, widths)
                )
            for height in range(max(map(len, below), default=0)):
                parts = zip(rest.titles, below, strict=True)
                said = [f"{title} {cell[height]}" for title, cell in parts if cell[height:] and cell[height]]
                yield from (StyledLine(text) for text in _fill(said, width or 0))


def _line(texts: Sequence[str], ways: Sequence[str], widths: Sequence[int]) -> str:
    cells = zip(texts, ways, widths, strict=True)
    aligned = (text.rjust(width) if way == ">" else text.ljust(width) for text, way, width in cells)
    return GAP.join(aligned).rstrip()


def _fill(parts: Sequence[str], width: int) -> Iterator[str]:
    """Yield lines of as many parts as fit."""
    line = ""
    for part in (piece for whole in parts for piece in _pieces(whole, width - len(INDENT))):
        if line and len(line) + len(GAP) + len(part) > width:
            yield line
            line = ""
        line = f"{line}{GAP}{part}" if line else INDENT + part
    if line:
        yield line


def _pieces(part: str, width: int) -> list[str]:
    return textwrap.wrap(part, width, break_long_words=False, break_on_hyphens=False) if len(part) > width else [part]


def _words(text: str) -> list[str]:
    """Return the pieces that must not be divided: words, and lists of numbers in brackets."""
    words: list[str] = []
    for word in text.split(" "):
        if words and words[-1].count("[") > words[-1].count("]"):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _wrap(cell: Cell, width: int | None) -> Cell:
    if width is None or all(len(text) <= width for text in cell):
        return cell
    kept = [" ".join(_shorten(word, width).replace(" ", "\0") for word in _words(text)) for text in cell]
    lines = [
        line
        for text in kept
        for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
    ]
    return [line.replace("\0", " ") for line in lines]


def _shorten(word: str, width: int) -> str:
    """Return the word; the middle of a long one is left out."""
    if len(word) <= width:
        return word
    head = (width - 1) // 2
    return f"{word[:head]}…{word[len(word) - (width - 1 - head) :]}"


#: Characters of a line if there is no terminal, most columns, and the least room for names.
_MATRIX_USUAL, _COLUMNS, _NAMES = 80, 36, 14
#: Places of operators that are named for a column.
_PLACES = 8


def matrix_lines(matrix: MatrixBlock, width: int | None) -> Iterator[StyledLine]:
    """Yield the rows with the number of profiles, their names and their marks, then what columns and marks are."""
    if not matrix.rows:
        return
    width = min(width or _MATRIX_USUAL, _MATRIX_USUAL)
    columns = matrix.columns[:_COLUMNS]
    numbers = [_number(k) for k in range(len(columns))]
    by = " " if 2 * len(columns) + _NAMES + 6 <= width else ""
    drawn = len(by.join(numbers))
    room = max(width - drawn - 6, _NAMES)
    below = drawn + _NAMES + 6 > width
    head = "profiles".ljust(room + 4) if not below else "profiles"
    yield StyledLine(f"{head}  {'' if below else by.join(numbers)}".rstrip(), "head")
    for row in matrix.rows[: matrix.most]:
        marks = by.join(mark.text for mark in row.marks[: len(columns)])
        named = f"{len(row.names):>3} {_some(row.names, room)}"
        style = "good" if all(mark.style == "good" for mark in row.marks) else ""
        if below:
            yield StyledLine(named, style)
            yield from (StyledLine(f"    {part}", style) for part in wrap(marks, width - 4))
        else:
            yield StyledLine(f"{named.ljust(room + 4)}  {marks}", style)
    left = len(matrix.rows) - matrix.most
    if left > 0:
        yield StyledLine(f"... and {counted(left, 'row')} more (--html shows them)", "faint")
    texts = [f"{number} {_column(column)}" for number, column in zip(numbers, columns, strict=True)]
    if len(matrix.columns) > _COLUMNS:
        texts.append(f"and {len(matrix.columns) - _COLUMNS} columns more (--html shows them)")
    for text in ("; ".join(texts), "; ".join(f"{mark.text}: {meaning}" for mark, meaning in matrix.key)):
        yield from (StyledLine(part, "faint") for part in wrap(printable(text), width, subsequent_indent="  "))


def _number(position: int) -> str:
    """Return the character above a column: digits, then letters."""
    return "123456789abcdefghijklmnopqrstuvwxyzA"[position]


def _column(column: MatrixColumn) -> str:
    return f"{column.op} {listed(column.places, _PLACES)}"


def _some(names: Sequence[str], room: int) -> str:
    """Return the first names that have room, and the number of the others."""
    for count in range(len(names), 0, -1):
        left = len(names) - count
        text = printable(", ".join(names[:count])) + (f" +{left}" if left else "")
        if len(text) <= room:
            return text
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return shorten(printable(names[0]), room - len(more)) + more


def shorten(text: str, room: int) -> str:
    """Return a text with its middle left out, if it has more characters than `room`."""
    if len(text) <= room:
        return text
    end = (room - 1) // 2
    return f"{text[: room - 1 - end]}…{text[len(text) - end :]}"


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


def lines_of(report: Report) -> Iterator[StyledLine]:
    """Yield the lines of a report. Blocks for pages only have none."""
    for block in report.blocks:
        yield from _lines(block)


def _lines(block: Block) -> Iterator[StyledLine]:
    match block:
        case blocks.Headline(style=style):
            yield StyledLine(block.line, style)
        case blocks.FactLine(text, style):
            yield StyledLine(plain(text), style)
        case blocks.Text(text, style, indent):
            yield StyledLine(GAP * indent + plain(text), style)
        case blocks.Note(text):
            yield StyledLine(f"note: {text}", "warning")
        case blocks.Gap():
            yield StyledLine("")
        case blocks.Verbatim(text):
            yield from map(StyledLine, text.split("\n"))
        case blocks.Listing(values, style, indent):
            yield from (StyledLine(GAP * indent + plain(value), style) for value in values)
        case blocks.Pairs(pairs):
            yield from table([("", "<"), ("", "<")], [(name, plain(value)) for name, value in pairs])
        case blocks.TableBlock():
            yield from _table_lines(block)
        case matrices.MatrixBlock():
            yield from matrix_lines(block, line_width())
        case blocks.Next(commands):
            for position, command in enumerate(commands):
                yield StyledLine(f"{'  or' if position else 'Next'}: {command}", "strong")
        case blocks.Section() | blocks.InText():
            for part in block.blocks:
                yield from _lines(part)


def _table_lines(block: blocks.TableBlock) -> Iterator[StyledLine]:
    shown, indent = block.rows[: block.most], GAP * block.indent
    if shown:
        for text, style in table(block.columns, [[plain(cell) for cell in row] for row in shown]):
            yield StyledLine(indent + text, style)
    left = len(block.rows) - len(shown)
    if left:
        yield StyledLine(indent + block.rest.format(left=left, shown=len(shown), of=len(block.rows)), "faint")


def table(columns: Columns, rows: Iterable[Sequence[str]]) -> Iterator[StyledLine]:
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
        yield from (StyledLine(part, "faint") for part in wrap(text, width or len(text), break_long_words=False))


def line_width() -> int | None:
    """Return the width of lines, at least NARROWEST: COLUMNS, else the terminal's; None without either."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return max(NARROWEST, int(columns))
    if sys.stdout is not None and sys.stdout.isatty():
        return max(NARROWEST, shutil.get_terminal_size((_USUAL, 24)).columns)
    return None


def fit(lines: Iterable[StyledLine]) -> Iterator[StyledLine]:
    """Wrap lines that are wider than the terminal between words. A command to type stays one command."""
    width = line_width()
    for line in lines:
        text = printable(line.text)
        if width is None or len(text) <= width:
            yield line
            continue
        end = _CONTINUED if text.startswith(_COMMANDS) else ""
        *parts, last = _divide(text, width - len(end))
        yield from (StyledLine(part + end, line.style) for part in parts)
        yield StyledLine(last, line.style)


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


def text_of(lines: Iterable[StyledLine], *, coloured: bool = False) -> str:
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
