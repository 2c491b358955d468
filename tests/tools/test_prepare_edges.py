"""Models at the edges of Prepare's conditions: profiles and runtimes take and refuse the same ones."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from opfuzz.edges import NOT_MICRO, Edge, draw_edge
from opfuzz.remote import Ended, Ran, Refused
from opfuzz.session import numbers, operators
from opfuzz.sides import WRONG, Answer, Side, judged
from tflq.model.flatbuf import read

TOOL = Path(__file__).parents[2] / "tools" / "prepare_edges.py"
SEED, COUNT = 37, 40
#: Declared shapes that are absent change what XNNPACK takes.
LEFT_OUT = frozenset({"shape_unknown"})


def drawn(count: int, seed: int = SEED) -> list[Edge]:
    found = (draw_edge(seed, number) for number in numbers(seed, operators([])))
    return list(itertools.islice((edge for edge in found if edge is not None), count))


@pytest.mark.parametrize(
    ("profile", "resolver"),
    [("litert-ref", "BUILTIN_REF"), ("litert-opt", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"), ("litert-xnnpack", "BUILTIN")],
)
def test_profiles_take_what_their_runtimes_take(profile: str, resolver: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    side = Side(profile, [sys.executable], "ai_edge_litert.interpreter", resolver)
    try:
        verdicts = {edge.number: side.judge(edge) for edge in drawn(COUNT) if not LEFT_OUT.intersection(edge.changes)}
    finally:
        side.close()
    assert {n: v for n, v in verdicts.items() if v.answer in WRONG} == {}
    counts = Counter(verdict.answer for verdict in verdicts.values())
    assert counts[Answer.EQUAL] > COUNT // 2
    assert counts[Answer.REFUSED] > COUNT // 20


def test_the_profile_of_tflite_micro_takes_what_it_takes() -> None:
    pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")
    side = Side("tflm", [sys.executable], "tflite_micro", "")
    try:
        verdicts = {edge.number: side.judge(edge) for edge in drawn(COUNT) if edge.is_for_micro}
    finally:
        side.close()
    assert {n: v for n, v in verdicts.items() if v.answer in WRONG} == {}


def test_an_edge_is_the_same_whenever_it_is_drawn() -> None:
    first, second = drawn(40), drawn(40)
    assert [edge.content for edge in first] == [edge.content for edge in second]
    assert all(edge.changes for edge in first)


def test_edges_are_of_every_kind() -> None:
    edges = drawn(500)
    kinds = Counter(change for edge in edges for change in edge.changes)
    assert len(kinds) >= 20
    assert all(read(edge.content).subgraphs for edge in edges[:50])
    assert kinds.keys() >= NOT_MICRO


def test_verdicts() -> None:
    one, other = Ran([[np.array([1, 2])]]), Ran([[np.array([1, 3])]])
    for ours, live, exact, answer in (
        (one, one, True, Answer.EQUAL),
        (one, other, True, Answer.DIFFERENT),
        (one, other, False, Answer.CLOSE),
        (one, Refused("no"), True, Answer.ONLY_PROFILE),
        (Refused("no"), one, True, Answer.ONLY_LIVE),
        (Refused("is not modelled"), one, True, Answer.NOT_MODELLED),
        (Refused("no", undefined=True), one, True, Answer.UNDEFINED),
        (Refused("no"), Refused("no"), True, Answer.REFUSED),
        (one, Ended("abort"), True, Answer.UNDEFINED),
        (Ended("bug"), one, True, Answer.FAILED),
    ):
        assert judged(ours, live, exact).answer == answer


def test_usage() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--ops", "NO_SUCH"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no operator" in done.stderr
