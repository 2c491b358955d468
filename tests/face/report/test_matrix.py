"""Profiles against operators: equal rows and columns are one, in text within its width and on a page."""

from __future__ import annotations

import re

import pytest

from tflq.face.report.blocks import Report
from tflq.face.report.matrices import MatrixBlock, MatrixMark, merge
from tflq.face.report.render import html
from tflq.face.report.render.text import _CODES, lines_of

SAME, OTHER, NONE = MatrixMark("=", "good"), MatrixMark("x", "bad"), MatrixMark("-", "unknown")
OPERATORS = [(str(k), "CONV_2D" if k < 5 else "ADD") for k in range(7)]
MARKS = {
    "ref": [SAME] * 7,
    "opt": [OTHER] * 5 + [SAME] * 2,
    "opt-2": [OTHER] * 5 + [SAME] * 2,
    "old": [SAME] * 6 + [OTHER],
    "ref-2": [SAME] * 7,
}
KEY = ((SAME, "the same"), (OTHER, "other"), (NONE, "refused"))


def matrix() -> MatrixBlock:
    return merge("Profiles", MARKS, OPERATORS, KEY)


def text(made: MatrixBlock, width: int | None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("COLUMNS", raising=False)
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    return [line.text for line in lines_of(Report("x", [made]))]


def test_equal_rows_and_columns_are_one() -> None:
    made = matrix()
    assert [row.names for row in made.rows] == [("ref", "ref-2"), ("opt", "opt-2"), ("old",)] or [
        row.names for row in made.rows
    ] == [("ref", "ref-2"), ("old",), ("opt", "opt-2")]
    assert [(column.op, column.places) for column in made.columns] == [
        ("CONV_2D", ("0", "1", "2", "3", "4")),
        ("ADD", ("5",)),
        ("ADD", ("6",)),
    ]
    assert [mark for mark, _ in made.key] == [SAME, OTHER]


def test_a_column_of_another_type_is_one_of_its_own() -> None:
    made = merge("x", {"a": [SAME, SAME], "b": [OTHER, OTHER]}, [("0", "ADD"), ("1", "MUL")], KEY)
    assert [column.op for column in made.columns] == ["ADD", "MUL"]


@pytest.mark.parametrize("width", [40, 60, 80, 200, None])
@pytest.mark.parametrize("columns", [1, 7, 30, 90])
def test_text_fits(width: int | None, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = {f"profile-{'long' * k}": [OTHER if k >> (j % 5) & 1 else SAME for j in range(columns)] for k in range(31)}
    made = merge("x", marks, [(str(j), f"OP_{j}") for j in range(columns)], KEY)
    lines = text(made, width, monkeypatch)
    assert max(map(len, lines)) <= min(width or 80, 80)
    assert any("more (--html" in line for line in lines) == (len(made.rows) > made.most)
    assert re.match(r"profiles +1|profiles$", lines[0])


def test_text_names_profiles_operators_and_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = text(matrix(), None, monkeypatch)
    assert re.fullmatch(r"  2 ref, ref-2 +(= = =)", lines[1])
    assert "1 CONV_2D 0, 1, 2, 3, 4; 2 ADD 5; 3 ADD 6" in lines
    assert "=: the same; x: other" in lines


def test_a_page_has_every_profile_and_escapes_names() -> None:
    hostile = {"<b>": [SAME] * 7, **MARKS, **{f"more-{k}": [SAME] * 7 for k in range(9)}}
    page = html.page_of(Report("x", [merge("Profiles", hostile, OPERATORS, KEY)]))
    names = ", ".join(f'<span class="whole">{name}</span>' for name in ("&lt;b&gt;", "ref", "ref-2"))
    assert f"<b>12 profiles</b> {names}\n<details>" in page
    assert all(name in page for name in MARKS)
    assert '<td class="bad">x</td>' in page
    assert "CONV_2D 0, 1, 2, 3, 4" in page


def test_no_rows_are_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = merge("x", {}, [], KEY)
    assert text(empty, 80, monkeypatch) == []
    assert "<table" not in html.page_of(Report("x", [empty]))


def luminance(code: int) -> float:
    """Return the relative luminance of a colour of the palette of 256: WCAG 2.1."""
    levels = [(0, 95, 135, 175, 215, 255)[(code - 16) // by % 6] / 255 for by in (36, 6, 1)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in levels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("style", ["good", "bad", "warning"])
def test_colours_are_legible_on_white_and_on_black(style: str) -> None:
    own = luminance(int(_CODES[style].rpartition(";")[2]))
    assert min(1.05 / (own + 0.05), (own + 0.05) / 0.05) >= 4.0 - 0.01
