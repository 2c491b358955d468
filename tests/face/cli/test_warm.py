"""`tflq doctor --warm`: what it compiles is there for the next process, and that it compiles is said on a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import validate
from support.suites import ROOT
from tflq.engine.jit.compiled import heard, listener
from tflq.face.report import progress

MODEL = ROOT / "golden" / "singleop" / "models" / "leaky_relu_01.tflite"


def _warmed(folder: Path) -> dict[str, object]:
    words = [sys.executable, "-m", "tflq", "doctor", "--warm", str(MODEL), "--json"]
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, env=os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    )
    assert done.stderr == ""
    found: dict[str, object] = json.loads(done.stdout)
    validate(found, "warm")
    return found


@pytest.mark.slow
def test_it_compiles_once(tmp_path: Path) -> None:
    first, second = _warmed(tmp_path), _warmed(tmp_path)
    assert first["functions"] == len(list((tmp_path / "tflq" / "machine-code").iterdir()))
    assert first["functions"] != 0
    assert second == {**first, "functions": 0, "seconds": 0}


def test_who_listens_within_hears_and_so_does_who_listens_around() -> None:
    told: list[tuple[str, int]] = []
    before = listener()
    with heard(lambda c: told.append(("around", c.functions))) as around, heard() as within:
        heard_by = listener()
        assert heard_by is within
        heard_by.begin()
        heard_by.begin()
        heard_by.end()
        heard_by.end()
    assert listener() is before
    assert told == [("around", 0), ("around", 0), ("around", 1), ("around", 2)]
    assert around.functions == within.functions == 2
    assert around.seconds == within.seconds


def test_a_terminal_is_told_when_it_lasts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    before = listener()
    for patience, says in ((60.0, False), (-1.0, True)):
        monkeypatch.setattr(progress, "PATIENCE", patience)
        with progress.compiling():
            compilations = listener()
            assert compilations is not None
            compilations.begin()
            compilations.end()
        assert ("compiling kernels, once" in capsys.readouterr().err) == says
    with progress.compiling(quiet=True):
        assert listener() is before
