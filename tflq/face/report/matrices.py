"""Profiles against operators in one picture: equal rows are one row, equal columns of one type are one column.

Blocks that are pictures of many operators: profiles against them, or a square for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tflq.face.report.blocks import Block


@dataclass(frozen=True, slots=True)
class MatrixMark:
    """A cell of a matrix: one character, and the style of its colour."""

    text: str
    style: str


@dataclass(frozen=True, slots=True)
class MatrixColumn:
    """Operators of one type with the same marks, by their places."""

    op: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """Profiles with the same marks, one for each column."""

    names: tuple[str, ...]
    marks: tuple[MatrixMark, ...]


@dataclass(frozen=True, slots=True)
class MatrixBlock(Block):
    """Profiles against operators, with the meaning of each mark in `key`. `title` names what a row has in common.

    Text lists the first `most` rows.
    """

    title: str
    columns: Sequence[MatrixColumn]
    rows: Sequence[MatrixRow]
    key: Sequence[tuple[MatrixMark, str]]
    most: int = 12


@dataclass(frozen=True, slots=True)
class Strip(Block):
    """A square for each operator in the colour of its style, on cards only. `title` states what they show."""

    title: str
    styles: Sequence[str]


#: An operator: its place, and its type.
Named = tuple[str, str]


def merge(
    title: str,
    marks: Mapping[str, Sequence[MatrixMark]],
    operators: Sequence[Named],
    key: Iterable[tuple[MatrixMark, str]],
) -> MatrixBlock:
    """Return the matrix of `marks`, which has one mark for each operator by profile.

    Rows that are the same are one row, the largest number of profiles with fewest marks of another style first. `key`
    holds marks with their meaning; those that do not occur are left out.
    """
    columns: dict[tuple[object, ...], list[int]] = {}
    for number, (_, op) in enumerate(operators):
        column = (op, *(row[number] for row in marks.values()))
        columns.setdefault(column, []).append(number)
    kept = list(columns.values())
    rows: dict[tuple[MatrixMark, ...], list[str]] = {}
    for name, row in marks.items():
        rows.setdefault(tuple(row[numbers[0]] for numbers in kept), []).append(name)
    ordered = sorted(rows.items(), key=lambda item: (sum(mark.style != "good" for mark in item[0]), -len(item[1])))
    seen = {mark for row in rows for mark in row}
    return MatrixBlock(
        title,
        [MatrixColumn(operators[numbers[0]][1], tuple(operators[n][0] for n in numbers)) for numbers in kept],
        [MatrixRow(tuple(names), row) for row, names in ordered],
        [(mark, meaning) for mark, meaning in key if mark in seen],
    )
