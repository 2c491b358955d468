"""Released runtimes on an edge suite: what changed from one to the next."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from opfuzz.edges import Edge
from opfuzz.scanning import ENDED, REFUSED, UNDEFINED, Outcomes, changes, environments
from opfuzz.session import draw_case


def edge(number: int) -> Edge:
    case = draw_case(1, number)
    return Edge(number, case, ("odd_version",), case.model(), case.samples)


def test_changes_of_bits_and_of_acceptance() -> None:
    edges = [edge(number) for number in range(6)]
    ops = [one.case.op for one in edges]
    before = Outcomes("a 1.0", "BUILTIN", dict(enumerate(["x", "x", REFUSED, "x", ENDED, "x"])))
    after = Outcomes("a 2.0", "BUILTIN", dict(enumerate(["x", "y", "x", REFUSED, "x", UNDEFINED])))
    (change,) = changes([before, after], edges)
    assert (change.before, change.after, change.compared) == ("a 1.0", "a 2.0", 4)
    assert change.bits == Counter([ops[1]])
    assert change.accepted == Counter([ops[2]])
    assert change.refused == Counter([ops[3]])
    assert change.examples == (1, 2, 3)


def test_environments_are_found_by_name_and_ordered(tmp_path: Path) -> None:
    names = (
        "ai-edge-litert-2.0.3",
        "tflite-runtime-2.9.1",
        "tflite-runtime-2.10.0",
        "ai-edge-litert-nightly-2.4.0",
        "x-1",
    )
    for name in names:
        python = tmp_path / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
    (tmp_path / "tflite-runtime-2.11.0").mkdir()
    assert [one.name for one in environments(tmp_path)] == [
        "tflite-runtime 2.9.1",
        "tflite-runtime 2.10.0",
        "ai-edge-litert 2.0.3",
        "ai-edge-litert-nightly 2.4.0",
    ]
