"""Ready targets in environments of their own: only a finished installation is used, and errors say what failed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.commands import tflq
from tflq.engine.runtimes import by_name, conversion
from tflq.errors import RuntimeFailed, UnknownNameError


@pytest.fixture(autouse=True)
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFLQ_TARGETS", str(tmp_path))
    return tmp_path


def answering(monkeypatch: pytest.MonkeyPatch, code: int, stderr: str = "") -> list[list[str]]:
    """Replace pip, and return the list of its calls."""
    calls: list[list[str]] = []

    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        calls.append(words)
        return subprocess.CompletedProcess(words, code, "", stderr)

    monkeypatch.setattr(conversion.subprocess, "run", run)
    monkeypatch.setattr(conversion.venv, "create", _make)
    return calls


def _make(place: Path, **_: Any) -> None:
    (place / "bin").mkdir(parents=True, exist_ok=True)
    (place / "bin" / "python").write_text("")


def test_an_installed_target_is_found_and_kept(targets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = answering(monkeypatch, 0)
    python = conversion.install("openvino")
    assert python == str(targets / "openvino" / "bin" / "python") == conversion.python_of("openvino")
    assert "openvino==2026.4.1" in calls[0]
    assert conversion.install("openvino") == python
    assert len(calls) == 1
    monkeypatch.setattr("tflq.engine.runtimes.process.find_spec", lambda _: None)
    assert by_name("openvino precision=bf16").python == python  # type: ignore[attr-defined]
    assert by_name("tvm").python is None  # type: ignore[attr-defined]
    assert by_name("openvino", python="other").python == "other"  # type: ignore[attr-defined]


def test_an_installation_that_failed_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, 1, "WARNING: x\nERROR: No matching distribution found")
    with pytest.raises(RuntimeFailed, match="No matching distribution"):
        conversion.install("tvm")
    assert conversion.python_of("tvm") is None


def test_names_and_options_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = answering(monkeypatch, 0)
    with pytest.raises(UnknownNameError):
        conversion.install("../openvino")
    for words in (["nothing"], ["openvino", "--warm"], ["openvino", "--python", "x"], ["openvino", "model.tflite"]):
        assert tflq("doctor", "--install", *words).exit_code == 2
    assert calls == []
