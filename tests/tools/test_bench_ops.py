"""The table of operators at a millisecond: larger draws, and the worst row of each choice of types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import bench_ops
import numpy as np
import pytest

from opfuzz.draw import Draw
from opfuzz.families import SPECS

TOOL = Path(__file__).parents[2] / "tools" / "bench_ops.py"


def row(op: str, types: str, theirs: float, ours: float) -> dict[str, Any]:
    return {"op": op, "types": types, "number": 0, "grow": 1.0, "litert": theirs, "tflq": ours, "full": False}


def test_growth_keeps_types_and_enlarges_sizes() -> None:
    for op in SPECS:
        first, second = (bench_ops.drawn(op, 3, grow).inputs[0] for grow in (1.0, 64.0))
        assert first is not None
        assert second is not None
        assert first.type == second.type, op
    for seed in range(20):
        small, large = (np.prod(Draw(np.random.default_rng(seed), grow).shape(2, 4)) for grow in (1.0, 64.0))
        if small > 1:
            assert large == pytest.approx(64 * small, rel=0.3), seed


def test_the_largest_ratio_of_each_choice_of_types_counts() -> None:
    table = [row("ADD", "int8", 10, 30), row("ADD", "int8", 10, 50), row("MUL", "int8", 10, 90), {"error": "no"}]
    assert [(r["op"], bench_ops.ratio(r)) for r in bench_ops.worst(table)] == [("MUL", 9.0), ("ADD", 5.0)]
    before, after = [row("ADD", "int8", 10, 50)], [row("ADD", "int8", 10, 5)]
    (line,) = bench_ops.compared(before, after)
    assert line.split() == ["5.00", "0.50", "10", "us", "ADD", "int8"]


def test_the_steepest_draw_of_each_choice_of_types_counts() -> None:
    models = [row("ADD", "int8", 100, 150), row("ADD", "int8", 10, 60), row("ADD", "int8", 15, 1)]
    other = [models[0] | {"number": 1, "tflq": 96.0}, models[1] | {"number": 1}]
    unknown = [row("MUL", "int8", 10, 60), row("MUL", "int8", 15, 90), row("NEG", "int8", 9, 9), {"error": "no"}]
    ((slope, found),) = bench_ops.slopes([*models, *other, *unknown])
    assert slope == pytest.approx((150 - 60) / (100 - 10))
    assert [one["litert"] for one in found] == [10, 15, 100]
    assert bench_ops.slope_line(slope, found).split()[:5] == ["1.00", "ADD", "int8", "6.00", "at"]
    assert bench_ops.targets_of("500,50") == [50, 500]


@pytest.mark.slow
def test_an_operator_is_measured(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    file = tmp_path / "table.json"
    command = [sys.executable, str(TOOL), "--ops", "NEG", "--draws", "1", "--targets", "20,80", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    table = json.loads(file.read_text("utf-8"))
    assert {r["op"] for r in table} == {"NEG"}
    assert all(r["work"] > 0 for r in table if "error" not in r)
    assert float(done.stdout.split()[0]) == pytest.approx(bench_ops.slopes(table)[0][0], abs=0.01)
    assert all(r["litert"] > 0 and r["tflq"] > 0 for r in table if "error" not in r)
