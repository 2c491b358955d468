"""Suites: made the same every time, read with care, right about what runtimes compute."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.commands import conform, tflq, validate
from tflq.devices.grids import drafts, rows
from tflq.devices.suites import make as making
from tflq.devices.suites.judge import CaseResult as Outcome
from tflq.devices.suites.make import Suite, read_suite, write_suite
from tflq.devices.suites.run import SuiteOrder, check, make_suite, pack, run_suite
from tflq.devices.suites.target import CommandTarget, target_of
from tflq.errors import FileAccessError, InputError, UnknownNameError
from tflq.model.storage.arrays import opened, write_arrays

#: Every so-manieth draft.
STEP = 150


def make(place: Path, jobs: int = 1) -> Path:
    """A small suite: some drafts of every family."""
    make_suite(str(place), SuiteOrder(every=STEP), jobs)
    return place


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("suite") / "suite.npz")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_equal_options_give_equal_bytes_however_many_processes(jobs: int, path: Path, tmp_path: Path) -> None:
    assert make(tmp_path / "again.npz", jobs).read_bytes() == path.read_bytes()


def suite(path: Path) -> Suite:
    with opened(path) as archive:
        return read_suite(archive)


def test_the_standard_suite_has_thousands_of_cases_of_every_kind() -> None:
    ops = Counter(draft.op for draft in drafts(0, "standard"))
    assert ops.total() >= 5_000
    assert {"CONV_2D", "ADD", "SOFTMAX", "MEAN", "PAD", "QUANTIZE", "RESIZE_BILINEAR", "AVERAGE_POOL_2D"} <= set(ops)


@pytest.mark.slow
def test_a_case_says_what_it_is_there_for(path: Path) -> None:
    cases = suite(path).cases
    assert len(cases) > 30
    assert all(case.aim for case in cases)
    assert {t for case in cases for t in case.tells} >= {"litert-opt", "litert-xnnpack", "tflm"}


@pytest.mark.slow
def test_the_profile_passes_its_own_suite(path: Path) -> None:
    verdicts = run_suite(str(path), target_of("profile:litert-ref"))
    assert {judged.result for judged in verdicts.cases} == {Outcome.PASSES}


@pytest.mark.slow
@pytest.mark.parametrize("resolver", ["litert-ref", "litert-opt"])
def test_the_real_runtime_fails_exactly_where_it_is_said_to(path: Path, resolver: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    verdicts = run_suite(str(path), target_of(f"runtime:{resolver}"))
    failing = {judged.case.id for judged in verdicts.failing}
    assert failing == {case.id for case in suite(path).cases if resolver in case.tells}
    assert all(judged.result in (Outcome.PASSES, Outcome.DIFFERS) for judged in verdicts.cases)
    assert bool(failing) == (resolver == "litert-opt")


@pytest.mark.slow
def test_another_profile_can_be_expected(path: Path, tmp_path: Path) -> None:
    stated = tmp_path / "mine.yaml"
    shown = tflq("profiles", "show", "litert-opt")
    stated.write_text(shown.output)
    own = conform("run", path, "--target", "profile:litert-opt", "--json")
    assert json.loads(own.output)["verdict"] == "fails"
    for name in ("litert-opt", str(stated)):
        done = conform("run", path, "--target", "profile:litert-opt", "--profile", name, "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["verdict"] == "passes"
    done = conform("run", path, "--target", "profile:litert-opt", "--profile", stated, "--shard", "2/3", "--json")
    with opened(str(path)) as archive:
        assert len(json.loads(done.stdout)["cases"]) == len(read_suite(archive).part("standard", (2, 3)).cases)
    done = conform("run", path, "--target", "profile:litert-ref", "--profile", stated)
    assert done.exit_code == 1, done.output
    assert conform("run", path, "--target", "profile:litert-ref", "--profile", "no-such").exit_code == 2


@pytest.mark.slow
def test_another_arithmetic_is_named(path: Path) -> None:
    verdicts = run_suite(str(path), target_of("profile:tflm"))
    dense = [j for j in verdicts.failing if j.case.op == "FULLY_CONNECTED" and j.causes]
    assert dense
    assert all("tflm" in judged.causes for judged in dense)


def test_shards_make_the_whole(path: Path) -> None:
    whole = suite(path)
    parts = [whole.part("standard", (i, 3)).cases for i in (1, 2, 3)]
    assert sorted(c.id for part in parts for c in part) == [c.id for c in whole.cases]
    assert {c.level for c in whole.part("smoke").cases} == {"smoke"}


TARGET = """
import pathlib, shutil, sys
folder = pathlib.Path(sys.argv[-1])
names = (folder / "cases.txt").read_text().split()
with open(folder / "calls.txt", "a") as calls:
    calls.write(" ".join(names) + chr(10))
for name in names:
    if name == CRASH:
        raise SystemExit("that was too much")
    for path in (folder.parent / "done" / name).iterdir():
        shutil.copy(path, folder / name / path.name)
"""


def stub(tmp_path: Path, path: Path, crash: str) -> CommandTarget:
    """A target that copies what a profile gave, and dies in one case."""
    done, job = tmp_path / "done", tmp_path / "job"
    run_suite(str(path), target_of("profile:litert-ref"), work=str(done))
    job.mkdir()
    (job / "cases.txt").touch()
    script = tmp_path / "target.py"
    script.write_text(f"CRASH = {crash!r}\n{TARGET}")
    return CommandTarget("stub", (sys.executable, str(script)), 60.0)


@pytest.mark.slow
def test_a_crash_costs_one_case_and_a_run_goes_on(tmp_path: Path, path: Path) -> None:
    cases = suite(path).cases
    crash = cases[3].id
    target = stub(tmp_path, path, crash)
    job = tmp_path / "job"
    verdicts = run_suite(str(path), target, work=str(job), batch=8)
    results = {judged.case.id: judged.result for judged in verdicts.cases}
    assert results.pop(crash) == Outcome.ENDED
    assert set(results.values()) == {Outcome.PASSES}
    assert "that was too much" in next(j.reason for j in verdicts.failing)
    called = Counter((job / "calls.txt").read_text().split())
    assert max(called[c.id] for c in cases[:3]) == 1
    (job / "calls.txt").unlink()
    run_suite(str(path), target, work=str(job), batch=8)
    assert (job / "calls.txt").read_text().split() == [crash]


def test_what_a_target_leaves_is_read_with_care(tmp_path: Path, path: Path) -> None:
    folder = tmp_path / "job"
    pack(str(path), folder)
    run_suite(str(path), target_of("profile:litert-ref"), work=str(folder))
    first, second, third, *_ = [c for c in suite(path).cases if not c.is_refused]
    (folder / first.id / "out0_0.bin").write_bytes(b"")
    linked = folder / second.id / "out0_0.bin"
    kept = linked.rename(tmp_path / "elsewhere.bin")
    linked.symlink_to(kept)
    wrong = folder / third.id / "out0_0.bin"
    data = bytearray(wrong.read_bytes())
    data[-1] ^= 1
    wrong.write_bytes(data)
    results = {judged.case.id: judged.result for judged in check(str(path), folder).failing}
    assert results == {first.id: Outcome.MALFORMED, second.id: Outcome.MALFORMED, third.id: Outcome.DIFFERS}


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(FileAccessError, match="something else"):
        pack(str(path), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("words", "said"), [("", "--target"), ("runtime:nobody", "no runtime 'nobody'"), ("'", "--target")]
)
def test_a_target_that_is_none_is_refused(words: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        target_of(words)


def damaged(path: Path, to: Path, change: object) -> Path:
    with np.load(path) as found:
        arrays = dict(found)
    document = json.loads(arrays["suite"].tobytes())
    change(document, arrays)
    arrays["suite"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    write_arrays(to, arrays)
    return to


def _first_data(document: dict, arrays: dict) -> None:
    name = f"data/{document['cases'][0][6]}"
    arrays[name] = arrays[name].copy()
    arrays[name][-1] ^= 1


DAMAGE = {
    "another schema": lambda d, a: d.update(schema="other/1"),
    "a case with a path for a name": lambda d, a: d["cases"][0].__setitem__(0, "../../00001-x"),
    "cases of one name": lambda d, a: d["cases"].append(d["cases"][0]),
    "a digest of nothing": lambda d, a: d["cases"][0].__setitem__(6, "0" * 32),
    "outputs for other samples": lambda d, a: d["cases"][0][8].append(d["cases"][0][8][0]),
    "a case without samples": lambda d, a: (d["cases"][0].__setitem__(7, []), d["cases"][0].__setitem__(8, [])),
    "a malformed case": lambda d, a: d["cases"].append(7),
    "data that were changed": _first_data,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_suite_is_bad_input(name: str, tmp_path: Path, path: Path) -> None:
    broken = damaged(path, tmp_path / "broken.npz", DAMAGE[name])
    with pytest.raises(InputError):
        run_suite(str(broken), target_of("profile:litert-ref"))


@pytest.mark.slow
def test_the_verb_reports(tmp_path: Path, path: Path) -> None:
    words = ("run", path, "--target", "profile:tflm", "--shard", "1/2")
    report = tmp_path / "report.xml"
    page, log, known = tmp_path / "page.html", tmp_path / "log.sarif", tmp_path / "known.json"
    result = conform(*words, "--junit", report, "--html", page, "--sarif", log)
    assert result.exit_code == 1, result.output
    assert "FULLY_CONNECTED" in result.stdout
    assert result.stdout.startswith("FAILS profile:tflm: ")
    assert "there for" not in result.stdout
    shown = conform(*words, "--table").stdout
    assert all(word in shown for word in ("level", "there for"))
    assert all(word in page.read_text() for word in ("FAILS", "FULLY_CONNECTED", "there for", "profile:tflm"))
    failing = json.loads(log.read_text())["runs"][0]["results"]
    assert len(failing) == report.read_text().count("<failure")
    assert (
        conform(*words, "--baseline", known, "--accept-until", "2999-12-31", "--reason", "the old chip").exit_code == 0
    )
    assert conform(*words, "--baseline", known).exit_code == 0
    assert report.read_text().rstrip().endswith("</testsuite>")
    document = json.loads(conform(*words, "--json").stdout)
    validate(document, "conform")
    assert sum(document["counts"].values()) == len(document["cases"])
    assert conform("run", path, "--target", "profile:litert-ref").exit_code == 0
    assert conform("run", path, "--target", "profile:litert-ref", "--shard", "3/2").exit_code == 2
    assert conform("run", suites.ROOT / "README.md", "--target", "profile:litert-ref").exit_code == 2


def test_a_target_in_c_passes_what_it_has_and_refuses_the_rest(tmp_path: Path, path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path / "target"
    source = suites.ROOT / "examples" / "target" / "target.c"
    subprocess.run([compiler, "-std=c99", "-Wall", "-Werror", "-O1", "-o", program, source, "-lm"], check=True)
    verdicts = run_suite(str(path), target_of(str(program)))
    counted = Counter(judged.result for judged in verdicts.cases)
    assert counted[Outcome.REFUSED] > 20
    assert not counted[Outcome.ENDED] + counted[Outcome.MALFORMED] + counted[Outcome.ACCEPTED]
    dense = [j for j in verdicts.cases if j.case.op == "FULLY_CONNECTED" and j.result != Outcome.REFUSED]
    assert dense
    assert {j.case.id for j in dense if j.fails} == {j.case.id for j in dense if "tflm" in j.case.tells}


def test_levels_and_shards_select_from_one_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = list[str]()
    monkeypatch.setattr(making, "drafts", lambda seed, level: drawn.append(level) or rows.drafts(seed))
    parts = [
        SuiteOrder(level=level, seed=99, shard=shard) for level, shard in (("smoke", (1, 4)), ("standard", (2, 4)))
    ]
    assert [len(list(order.drafts())) for order in parts] == [17, 31]
    assert drawn == ["standard"]


@pytest.mark.slow
def test_a_suite_of_some_operators_has_their_cases_as_the_whole_suite_has_them(tmp_path: Path) -> None:
    order = SuiteOrder(level="smoke", every=300)
    whole, some = making.make(order), making.make(replace(order, ops=("ADD", "CONV_2D")))
    assert some.suite.cases == tuple(case for case in whole.suite.cases if case.op in ("ADD", "CONV_2D"))
    write_suite(str(tmp_path / "some.npz"), some.suite, some.data)
    with opened(str(tmp_path / "some.npz")) as archive:
        assert read_suite(archive) == some.suite
    with pytest.raises(UnknownNameError, match="HASHTABLE"):
        making.make(replace(order, ops=("HASHTABLE",)))
