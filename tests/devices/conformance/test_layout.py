"""The focus on layouts: the real runtime decides, planted mistakes are found, and other orders are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import suites
from support.commands import tflq
from tflq.devices.grids import geometric
from tflq.devices.suites.judge import CaseResult
from tflq.devices.suites.make import SuiteOrder, read_suite
from tflq.devices.suites.run import run_suite
from tflq.devices.suites.target import target_of
from tflq.errors import OptionError, UnknownNameError
from tflq.model.storage.arrays import opened
from tflq.verbs.conform import make_suite

#: Every n-th case, of all operators and types.
PART = 61


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layout") / "part.npz"
    make_suite(path, focus="layout", shard=(1, PART))
    return path


@pytest.mark.parametrize("runtime", ["litert-ref", pytest.param("litert-opt", marks=pytest.mark.slow)])
def test_the_real_runtime_fails_where_its_profile_does(part: Path, runtime: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    verdicts = run_suite(str(part), target_of(f"runtime:{runtime}"))
    with opened(str(part)) as archive:
        cases = read_suite(archive).cases
    assert len(verdicts.cases) == len(cases) > 30
    assert {one.case.id for one in verdicts.failing} == {case.id for case in cases if runtime in case.tells}
    assert {one.result for one in verdicts.cases} <= {CaseResult.PASSES, CaseResult.DIFFERS}


@pytest.mark.slow
def test_every_planted_mistake_of_layout_is_found(tmp_path: Path) -> None:
    make_suite(tmp_path / "layout.npz", focus="layout", jobs=2)
    words = [sys.executable, suites.ROOT / "tools" / "mutate_suite.py", tmp_path / "layout.npz", "--layout"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    caught, _, every, *_ = done.stdout.splitlines()[-1].split()
    assert (caught, done.returncode) == (every, 0)
    assert int(every) > 1000


def test_a_focus_repeats_no_geometry() -> None:
    seen = [(draft.op, draft.types, draft.aim) for draft in geometric.layout_drafts(0)]
    assert len(set(seen)) == len(seen) > 2000
    known = {(draft.op, draft.types, draft.aim) for draft in geometric.drafts(0)}
    assert not known & set(seen)


def test_an_order_names_a_focus_or_a_level() -> None:
    with pytest.raises(OptionError, match="no levels"):
        make_suite("never.npz", level="smoke", focus="layout")
    for name in ("tails", ""):
        with pytest.raises(UnknownNameError, match="layout"):
            make_suite("never.npz", focus=name)
    assert {level for _, _, level in SuiteOrder(focus="layout", shard=(1, 400)).drafts()} == {"smoke"}
    for words in (["--focus", "tails"], ["--focus", ""], ["--focus"], ["--focus", "layout", "--level", "smoke"]):
        assert tflq("conform", "make", "-o", "never.npz", *words).exit_code == 2
    assert not Path("never.npz").exists()
