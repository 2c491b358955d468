"""Profiles against operators in one picture: equal rows are one row, equal columns of one type are one column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tflq.face.report.pictures import Mark, Matrix, MatrixColumn, MatrixRow

#: An operator: its place, and its type.
Named = tuple[str, str]


def merge(
    title: str, marks: Mapping[str, Sequence[Mark]], operators: Sequence[Named], key: Iterable[tuple[Mark, str]]
) -> Matrix:
    """Return the matrix of `marks`, which has one mark for each operator by profile.

    Rows that are the same are one row, the largest number of profiles with fewest marks of another style first. `key`
    holds marks with their meaning; those that do not occur are left out.
    """
    columns: dict[tuple[object, ...], list[int]] = {}
    for number, (_, op) in enumerate(operators):
        column = (op, *(row[number] for row in marks.values()))
        columns.setdefault(column, []).append(number)
    kept = list(columns.values())
    rows: dict[tuple[Mark, ...], list[str]] = {}
    for name, row in marks.items():
        rows.setdefault(tuple(row[numbers[0]] for numbers in kept), []).append(name)
    ordered = sorted(rows.items(), key=lambda item: (sum(mark.style != "good" for mark in item[0]), -len(item[1])))
    seen = {mark for row in rows for mark in row}
    return Matrix(
        title,
        [MatrixColumn(operators[numbers[0]][1], tuple(operators[n][0] for n in numbers)) for numbers in kept],
        [MatrixRow(tuple(names), row) for row, names in ordered],
        [(mark, meaning) for mark, meaning in key if mark in seen],
    )
