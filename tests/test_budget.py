"""The budget of the default selection: what it counts, and that more than it is named."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from support.costs import Costs, beyond

ROOT = Path(__file__).resolve().parent.parent


def test_what_exceeds_the_budget_is_named(tmp_path: Path) -> None:
    costs = Costs(None, None, tmp_path / "budget.json")
    costs.seconds = Counter({"tests/proof/test_a.py::one": 100 * costs._beat, "tests/test_b.py::two": 10 * costs._beat})
    costs.cases, costs.functions = 2, 5
    assert costs.of_folders() == {"tests": 10, "tests/proof": 100}
    seconds = 110 * costs._beat
    enough = {"seconds": seconds / 2, "cases": 2, "functions": 5, "beats": {"tests": 10, "tests/proof": 95}}
    assert beyond(enough, costs) == []
    assert beyond({**enough, "functions": 4}, costs) == ["functions 5 of 4"]
    assert beyond({**enough, "beats": {"tests": 6, "tests/proof": 200}}, costs) == ["tests 10 of 6"]
    assert beyond({**enough, "seconds": seconds, "beats": {"tests": 6, "tests/proof": 200}}, costs) == []
    assert beyond({**enough, "beats": {"tests/proof": 90}}, costs)[-1] == "all tests 110 of 90"


def test_the_budget_names_only_folders_that_exist() -> None:
    budget = json.loads((ROOT / "tests" / "budget.json").read_text(encoding="utf-8"))
    folders = {f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/test_*.py")}
    folders |= {"/".join(p.relative_to(ROOT).parts[:2]) for p in (ROOT / "tests").glob("*/*/**/test_*.py")}
    assert set(budget["beats"]) - {"tests"} <= folders
