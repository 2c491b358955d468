"""Growth is decided: a commit that makes a wing larger edits tests/lines.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIMITS: dict[str, int] = json.loads((ROOT / "tests" / "lines.json").read_text(encoding="utf-8"))
#: Lines below its limit at which a wing's limit must be lowered.
SLACK = 400


def lines_in(folder: str) -> int:
    """Return the number of lines of Python in a folder."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", LIMITS)
def test_no_wing_grows_unnoticed(folder: str) -> None:
    assert LIMITS[folder] - SLACK <= lines_in(folder) <= LIMITS[folder], "edit tests/lines.json in the same commit"


def test_every_wing_has_a_limit() -> None:
    wings = {f"tflq/{path.name}" for path in (ROOT / "tflq").iterdir() if (path / "__init__.py").exists()}
    assert wings == {folder for folder in LIMITS if folder.startswith("tflq/")}
