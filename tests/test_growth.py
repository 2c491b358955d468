"""Growth is decided: a commit that makes a wing larger edits tests/lines.json. A class name means one thing."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIMITS: dict[str, dict[str, int]] = json.loads((ROOT / "tests" / "lines.json").read_text(encoding="utf-8"))
#: How far below its limit a wing may lie before the limit must be lowered.
SLACK = {"lines": 400, "statements": 400, "modules": 4}
#: Class names that several modules have: the prepared data of an operator, and the drop-in interpreter's two homes.
SHARED = ("Data", "Interpreter")


def size_of(folder: str) -> Counter[str]:
    """Return the lines, lines of statements, and modules of Python in a folder."""
    found: Counter[str] = Counter()
    for path in (ROOT / folder).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found += Counter(lines=len(text.splitlines()), statements=statements_in(text), modules=1)
    return found


def statements_in(text: str) -> int:
    """Return the number of lines that are neither blank nor a comment, a docstring or an import."""
    others = {n for n, line in enumerate(text.splitlines(), 1) if not line.strip() or line.strip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                others.update(range(first.lineno, first.end_lineno + 1))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            others.update(range(node.lineno, node.end_lineno + 1))
    return len(text.splitlines()) - len(others)


@pytest.mark.parametrize("folder", LIMITS)
def test_no_wing_grows_unnoticed(folder: str) -> None:
    found = size_of(folder)
    for what, limit in LIMITS[folder].items():
        assert limit - SLACK[what] <= found[what] <= limit, f"{what}: edit tests/lines.json in the same commit"


def test_every_wing_has_a_limit() -> None:
    wings = {f"tflq/{path.name}" for path in (ROOT / "tflq").iterdir() if (path / "__init__.py").exists()}
    assert wings == {folder for folder in LIMITS if folder.startswith("tflq/")}


def test_a_class_name_means_one_thing() -> None:
    names: Counter[str] = Counter()
    for path in (ROOT / "tflq").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names.update(node.name for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1 and not name.endswith(SHARED)] == []
