"""The README's commands and code, executed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support import suites

README = (suites.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    monkeypatch.chdir(suites.ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(code, {})
    assert "same 0 of" in capsys.readouterr().out


def test_its_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    for target in targets:
        if not target.startswith("http"):
            assert (suites.ROOT / target).exists(), target


@pytest.mark.slow
def test_the_picture_shows_what_the_commands_print() -> None:
    tool = suites.ROOT / "tools/make_screen.py"
    assert subprocess.run([sys.executable, str(tool), "--check"], check=False).returncode == 0
