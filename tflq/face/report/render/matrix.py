"""A matrix of profiles and operators in a terminal: a line for each row, a character for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from tflq.escaping import printable
from tflq.face.report.numbers import counted
from tflq.face.report.pictures import Matrix, MatrixColumn
from tflq.face.report.render.line import Line

#: Characters of a line if there is no terminal, most columns, and the least room for names.
_USUAL, _COLUMNS, _NAMES = 80, 36, 14
#: Places of operators that are named for a column.
_PLACES = 8


def matrix_lines(matrix: Matrix, width: int | None) -> Iterator[Line]:
    """Yield the rows with the number of profiles, their names and their marks, then what columns and marks are."""
    if not matrix.rows:
        return
    width = min(width or _USUAL, _USUAL)
    columns = matrix.columns[:_COLUMNS]
    numbers = [_number(k) for k in range(len(columns))]
    by = " " if 2 * len(columns) + _NAMES + 6 <= width else ""
    drawn = len(by.join(numbers))
    room = max(width - drawn - 6, _NAMES)
    below = drawn + _NAMES + 6 > width
    head = "profiles".ljust(room + 4) if not below else "profiles"
    yield Line(f"{head}  {'' if below else by.join(numbers)}".rstrip(), "head")
    for row in matrix.rows[: matrix.most]:
        marks = by.join(mark.text for mark in row.marks[: len(columns)])
        named = f"{len(row.names):>3} {_some(row.names, room)}"
        style = "good" if all(mark.style == "good" for mark in row.marks) else ""
        if below:
            yield Line(named, style)
            yield from (Line(f"    {part}", style) for part in wrap(marks, width - 4))
        else:
            yield Line(f"{named.ljust(room + 4)}  {marks}", style)
    left = len(matrix.rows) - matrix.most
    if left > 0:
        yield Line(f"... and {counted(left, 'row')} more (--html shows them)", "faint")
    texts = [f"{number} {_column(column)}" for number, column in zip(numbers, columns, strict=True)]
    if len(matrix.columns) > _COLUMNS:
        texts.append(f"and {len(matrix.columns) - _COLUMNS} columns more (--html shows them)")
    for text in ("; ".join(texts), ", ".join(f"{mark.text} {meaning}" for mark, meaning in matrix.key)):
        yield from (Line(part, "faint") for part in wrap(printable(text), width, subsequent_indent="  "))


def _number(position: int) -> str:
    """Return the character above a column: digits, then letters."""
    return "123456789abcdefghijklmnopqrstuvwxyzA"[position]


def _column(column: MatrixColumn) -> str:
    more = len(column.places) - _PLACES
    return f"{column.op} {', '.join(column.places[:_PLACES])}" + (f" and {more} more" if more > 0 else "")


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
