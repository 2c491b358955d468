"""`tflq extract` and `tflq diff`: exit codes, lines and documents."""

from __future__ import annotations

from pathlib import Path

from support import suites
from support.commands import document, tflq

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


def test_extract_writes_a_model(tmp_path: Path) -> None:
    result = tflq("extract", MODEL, "1..2", "-o", tmp_path / "part.tflite")
    assert result.exit_code == 0
    assert "2 operator(s), 1, 2 of the original" in result.stdout
    assert tflq("run", tmp_path / "part.tflite").exit_code == 0
    found = document(tflq("extract", MODEL, "1..2", "-o", tmp_path / "part.tflite", "--force", "--json"), "extract")
    assert found["operators"] == [1, 2]


def test_extract_refuses_an_unknown_operator(tmp_path: Path) -> None:
    assert tflq("extract", MODEL, "nobody", "-o", tmp_path / "part.tflite").exit_code == 2
    assert not (tmp_path / "part.tflite").exists()


def test_extract_refuses_a_range_that_runs_backwards(tmp_path: Path) -> None:
    result = tflq("extract", MODEL, "3..1", "-o", tmp_path / "part.tflite")
    assert (result.exit_code, (tmp_path / "part.tflite").exists()) == (2, False)
    assert "'3..1'" in result.stderr


def test_diff_says_which_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "other.bin").write_bytes(b"no model at all")
    result = tflq("diff", MODEL, tmp_path / "other.bin")
    assert result.exit_code == 2
    assert "other.bin: is a text, not a .tflite model" in result.stderr


def test_diff_says_whether_models_differ(tmp_path: Path) -> None:
    assert tflq("diff", MODEL, MODEL).exit_code == 0
    tflq("extract", MODEL, "1..2", "-o", tmp_path / "part.tflite")
    result = tflq("diff", MODEL, tmp_path / "part.tflite")
    assert result.exit_code == 1
    found = document(tflq("diff", MODEL, tmp_path / "part.tflite", "--json"), "diff")
    assert {c["what"] for c in found["changes"]} >= {"operator"}
