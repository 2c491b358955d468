"""docs/how-to/explain-a-difference.md, executed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import suites

PAGE = (suites.ROOT / "docs" / "how-to" / "explain-a-difference.md").read_text(encoding="utf-8")


def test_every_command_does_what_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    (tmp_path / "golden").symlink_to(suites.ROOT / "golden")
    said = {}
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        program, verb, *arguments = shlex.split(block)
        assert program == "tflq"
        done = subprocess.run(
            [sys.executable, "-m", "tflq.cli.main", verb, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        said[verb] = (done.returncode, done.stdout, done.stderr)
    assert said["record"][0] == 0, said["record"]
    assert said["explain"][0] == 1, said["explain"]
    assert "profile: litert-opt" in said["explain"][1]
    assert said["fit"][0] == 0, said["fit"]
    assert said["fit"][1].startswith("Best: litert-opt explains every operator compared")
