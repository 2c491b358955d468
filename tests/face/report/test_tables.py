"""Tables: empty columns are dropped, they fit the terminal, and numbers are never divided."""

from __future__ import annotations

import re

import pytest

from tflq.face.report.render.text import table

COLUMNS = (("#", ">"), ("operator", "<"), ("profiles", "<"), ("real multiplier", ">"), ("note", "<"), ("promise", "<"))
ROWS = [
    (
        str(k),
        "DEPTHWISE_CONV_2D" if k else "CONV_2D",
        "litert-ref, " * 12 + f"tflm{k}",
        f"0.00{k}12345678 .. 0.12345678{k}",
        "",
        "exact",
    )
    for k in range(3)
]


def text(rows: list[tuple[str, ...]]) -> list[str]:
    return [line.text for line in table(COLUMNS, rows)]


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def test_a_pipe_gets_whole_rows_without_empty_columns() -> None:
    lines = text(ROWS)
    assert len(lines) == 4
    assert "note" not in lines[0]
    assert "promise" in lines[0]


@pytest.mark.parametrize("columns", [20, 80, 100, 140])
def test_a_terminal_gets_lines_that_fit(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = text(ROWS)
    assert max(map(len, lines)) <= max(columns, 80)
    assert lines[-1] == "in every row: promise exact"
    joined = " ".join(" ".join(lines).split())
    for k in range(3):
        assert f"0.00{k}12345678 .. 0.12345678{k}" in joined
    assert joined.count("litert-ref,") == 36
    assert set(re.findall(r"[\d.]{6,}", joined)) == {f"0.00{k}12345678" for k in range(3)} | {
        f"0.12345678{k}" for k in range(3)
    }


def test_long_names_lose_their_middle_only_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("1", "x" * 30 + "y" * 70, "a b", "1", "", "")]
    assert "x" * 30 + "y" * 70 in "\n".join(text(rows))
    monkeypatch.setenv("COLUMNS", "80")
    lines = text(rows)
    assert max(map(len, lines)) <= 80
    assert re.search("x+…y+", "\n".join(lines))
