"""A matrix of profiles and operators on a page: a coloured table whose rows unfold to the names of their profiles."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from tflq.face.report.html.parts import details, figure, key, text, together
from tflq.face.report.numbers import counted
from tflq.face.report.pictures import Matrix, MatrixColumn, MatrixRow

#: Most columns that are drawn, and names that are listed before the others are folded.
_COLUMNS, _NAMES = 60, 3


def matrix_table(matrix: Matrix) -> Markup:
    """Return the table with its key. It scrolls sideways if it is too wide."""
    columns = matrix.columns[:_COLUMNS]
    head = Markup("").join(_head(column) for column in columns)
    body = Markup("\n").join(_row(row) for row in matrix.rows)
    table = Markup(
        '<div class="scroll" tabindex="0" role="group" aria-label="{}"><table class="matrix profiles">\n'
        "<thead><tr><th scope=col>profiles</th>{}</tr></thead>\n<tbody>\n{}\n</tbody></table></div>"
    ).format(matrix.title, head, body)
    meanings = [
        Markup("{}<b>{}</b> {}").format(key(mark.style), text(mark.text), text(said)) for mark, said in matrix.key
    ]
    left = len(matrix.columns) - len(columns)
    if left:
        meanings.append(text(f"{counted(left, 'column')} more are in --json"))
    return figure(table, Markup(" &ensp; ").join(meanings))


def _head(column: MatrixColumn) -> Markup:
    """Return the head of a column: the type, and the operators or their number."""
    places = column.places[0] if len(column.places) == 1 else f"{len(column.places)} of them"
    return Markup('<th scope=col title="{}"><span>{} <small>{}</small></span></th>').format(
        f"{column.op} {', '.join(column.places)}", text(column.op), text(places)
    )


def _row(row: MatrixRow) -> Markup:
    shown, rest = row.names[:_NAMES], row.names[_NAMES:]
    names = _names(shown)
    if rest:
        names = together(names, details(f"and {len(rest)} more", _names(rest)))
    label = Markup("<b>{}</b> {}").format(counted(len(row.names), "profile"), names) if len(row.names) > 1 else names
    cells = Markup("").join(
        Markup('<td class="{}">{}</td>').format(mark.style, text(mark.text)) for mark in row.marks[:_COLUMNS]
    )
    return Markup("<tr><th scope=row>{}</th>{}</tr>").format(label, cells)


def _names(names: Sequence[str]) -> Markup:
    """Return names with commas; no line breaks inside one."""
    return Markup(", ").join(Markup('<span class="whole">{}</span>').format(name) for name in names)
