"""A suite on several processes and on a real Dask cluster, of which a worker is killed: every case once."""

from __future__ import annotations

import json
import pickle
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from measure_cluster import cluster, push

from support.commands import conform
from tflq.devices.learning.joint import causes_of_suite
from tflq.devices.suites.run import SuiteOrder, SuitePart, do, make_suite, parts_of, run_suite, spread
from tflq.devices.suites.target import target_of
from tflq.errors import FileAccessError, InputError, RuntimeFailed, RuntimeMissing, TflqError

TARGET = "profile:tflm"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A dozen cases."""
    place = str(tmp_path_factory.mktemp("suite") / "suite.npz")
    make_suite(place, SuiteOrder(every=600))
    return place


@pytest.mark.parametrize(
    "error", [RuntimeMissing("a", "b"), FileAccessError("p", "r"), InputError("x", name="n"), RuntimeFailed("a", "b")]
)
def test_errors_travel_between_processes(error: TflqError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@pytest.mark.slow
def test_parts_make_the_whole(path: str) -> None:
    parts = parts_of(SuitePart(path, TARGET), size=5)
    whole = run_suite(path, target_of(TARGET)).cases
    assert [(p.start, p.stop) for p in parts] == [(a, min(a + 5, len(whole))) for a in range(0, len(whole), 5)]


def test_a_suite_that_took_the_place_of_another_is_read_anew(path: str, tmp_path: Path) -> None:
    other = tmp_path / "suite.npz"
    shutil.copy(path, other)
    part = SuitePart(str(other), TARGET, stop=2)
    before = [judged.case.model for judged in do(part).cases]
    make_suite(str(other), SuiteOrder(every=600, seed=1))
    after = [judged.case.model for judged in run_suite(str(other), target_of(TARGET)).cases[:2]]
    assert before != after
    assert [judged.case.model for judged in do(part).cases] == after


@pytest.mark.slow
def test_processes_give_what_one_gives(path: str) -> None:
    one = run_suite(path, target_of(TARGET), naming=causes_of_suite)
    several = spread(SuitePart(path, TARGET), one.target, jobs=2, naming=causes_of_suite)
    assert several.cases == one.cases
    assert several.joint == one.joint


@pytest.mark.slow
def test_a_killed_worker_loses_no_case_and_counts_none_twice(path: str, tmp_path: Path) -> None:
    repeats = 12
    parts = [replace(p, groups=0) for p in parts_of(SuitePart(path, TARGET), size=3)] * repeats
    expected = Counter({judged.case.id: repeats for judged in run_suite(path, target_of(TARGET)).cases})
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    with cluster(tmp_path) as running:
        counted, _ = push(parts, running)
        assert running.workers[0].wait(60) != 0
    assert counted == expected


@pytest.mark.slow
def test_the_verb_spreads_and_writes_rows(path: str, tmp_path: Path) -> None:
    lines, table = tmp_path / "rows.jsonl", tmp_path / "rows.parquet"
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    with cluster(tmp_path) as running:
        result = conform("run", path, "--target", TARGET, "--scheduler", running.address, "--results", lines, "--json")
    cases = json.loads(result.stdout)["cases"]
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [(r["id"], r["result"]) for r in rows] == [(c["id"], c["result"]) for c in cases]
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    conform("run", path, "--target", TARGET, "--results", table)
    assert [(r["id"], r["result"], r["largest"]) for r in parquet.read_table(table).to_pylist()] == [
        (r["id"], r["result"], r["largest"]) for r in rows
    ]


def test_one_folder_is_of_one_process(path: str, tmp_path: Path) -> None:
    assert conform("run", path, "--target", TARGET, "--jobs", 2, "--work", tmp_path / "w").exit_code == 2
