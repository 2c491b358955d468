"""Commands that the documents show, executed on the models that they name."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import suites

#: Commands that end with another code than 0 because they show a difference.
DIFFERS = ("--against litert-xnnpack",)

TOUR = (suites.ROOT / "docs" / "tour.md").read_text(encoding="utf-8")


def test_the_tour_can_be_walked(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    (tmp_path / "golden").symlink_to(suites.ROOT / "golden")
    blocks = re.findall(r"```sh\n(.*?)```", TOUR, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 7
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "tflq"
        done = subprocess.run(
            [sys.executable, "-m", "tflq.cli.main", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        expected = 1 if any(part in line for part in DIFFERS) else 0
        assert done.returncode == expected, f"{line}\n{done.stdout}\n{done.stderr}"
