"""A table as a value: cells in columns, made narrower step by step, and its lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tflq.face.report.render.line import Line

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

    def lines(self, width: int | None) -> Iterator[Line]:
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
        yield Line(_line(first.titles, first.ways, widths), "head")
        for row, below in zip(first.rows, rest.rows, strict=True):
            for height in range(max(len(cell) for cell in row)):
                yield Line(_line([cell[height] if height < len(cell) else "" for cell in row], first.ways, widths))
            for height in range(max(map(len, below), default=0)):
                parts = zip(rest.titles, below, strict=True)
                said = [f"{title} {cell[height]}" for title, cell in parts if cell[height:] and cell[height]]
                yield from (Line(text) for text in _fill(said, width or 0))


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
