"""The verdict on a target: nothing compared never passes, refusals and abnormal ends count, runs are not mixed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from support.commands import conform
from tflq.devices.suites.judge import SuiteVerdict
from tflq.devices.suites.make import Case, read_suite
from tflq.devices.suites.run import SuiteOrder, make_suite, run_suite
from tflq.devices.suites.target import target_of
from tflq.errors import InputWarning
from tflq.model.storage.arrays import opened, write_arrays

#: A target that copies what a profile gave, and then does what ODD says.
TARGET = """
import os, pathlib, shutil, signal, sys
folder = pathlib.Path(sys.argv[-1])
names = (folder / "cases.txt").read_text().split()
for number, name in enumerate(names):
    place = folder / name
    given = [p for p in (pathlib.Path(DONE) / name).iterdir() if p.name.startswith("out") or p.name == "refused.txt"]
    for path in given:
        if ODD != "silent" and not (ODD == "refuse" or ODD == "refuse one" and number == 0):
            shutil.copy(path, place / path.name)
        elif ODD != "silent":
            (place / "refused.txt").write_text("no")
    if ODD == "both" and number == 0:
        (place / "refused.txt").write_text("no after all")
    if ODD == "wrong" and number == 0:
        for path in place.glob("out*"):
            path.write_bytes(bytes(b ^ MASK for b in path.read_bytes()))
if ODD == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if ODD == "exits":
    sys.exit("torn down badly")
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("suite") / "suite.npz"
    make_suite(str(place), SuiteOrder(every=1000))
    return place


@pytest.fixture(scope="module")
def done(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the profile of the suite gives."""
    place = tmp_path_factory.mktemp("done") / "work"
    run_suite(str(path), target_of("profile:litert-ref"), work=str(place))
    return place


def cases(path: Path) -> tuple[Case, ...]:
    with opened(path) as archive:
        return read_suite(archive).cases


def script(place: Path, done: Path, odd: str = "", mask: int = 1) -> str:
    """Write a target; return its command."""
    place.write_text(f"DONE, ODD, MASK = {str(done)!r}, {odd!r}, {mask}\n{TARGET}")
    return f"{sys.executable} {place}"


def test_a_target_that_gives_all_bits_passes(path: Path, done: Path, tmp_path: Path) -> None:
    result = conform("run", path, "--target", script(tmp_path / "t.py", done))
    assert result.exit_code == 0, result.output
    count = sum(not case.is_refused for case in cases(path))
    assert "PASSES" in result.stdout
    assert f"{count} of {count} cases pass against litert-ref" in result.stdout


def test_an_empty_suite_does_not_pass(path: Path, tmp_path: Path) -> None:
    with np.load(path) as found:
        arrays = dict(found)
    document = json.loads(arrays["suite"].tobytes())
    document["cases"] = []
    arrays["suite"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    write_arrays(tmp_path / "empty.npz", arrays)
    junit = tmp_path / "j.xml"
    for jobs in (1, 2):
        words = (
            "run",
            tmp_path / "empty.npz",
            "--target",
            "profile:litert-ref",
            "--jobs",
            jobs,
            "--junit",
            junit,
            "-f",
        )
        result = conform(*words)
        assert (result.exit_code, "NOTHING COMPARED" in result.stdout) == (3, True), result.output
        assert ElementTree.fromstring(junit.read_text()).get("errors") == "1"


def test_a_target_that_refuses_everything_does_not_pass(path: Path, done: Path, tmp_path: Path) -> None:
    command = script(tmp_path / "t.py", done, "refuse")
    log = tmp_path / "s.json"
    result = conform("run", path, "--target", command, "--sarif", log)
    assert (result.exit_code, "NOTHING COMPARED" in result.stdout) == (3, True), result.output
    assert len(json.loads(log.read_text())["runs"][0]["results"]) == 1
    known = ("--baseline", tmp_path / "k.json", "--accept-until", "2999-12-31", "--reason", "x")
    assert conform("run", path, "--target", command, *known).exit_code == 3


@pytest.mark.parametrize("odd", ["killed", "exits"])
def test_a_target_that_fails_after_its_last_answer_does_not_pass(
    odd: str, path: Path, done: Path, tmp_path: Path
) -> None:
    words = ("run", path, "--target", script(tmp_path / "t.py", done, odd))
    result = conform(*words, "--junit", tmp_path / "j.xml")
    assert (result.exit_code, "TARGET FAILED" in result.stdout) == (4, True), result.output
    assert ("signal 9" if odd == "killed" else "torn down badly") in result.stdout
    assert "<error" in (tmp_path / "j.xml").read_text()
    document = json.loads(conform(*words, "--json").stdout)
    assert (document["verdict"], len(document["endings"])) == ("target failed", 1)


def test_a_refusal_beside_outputs_fails(path: Path, done: Path, tmp_path: Path) -> None:
    result = conform("run", path, "--target", script(tmp_path / "t.py", done, "both"), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["verdict"], document["counts"]["malformed"]) == (1, "fails", 1)
    assert "but also left out0_0.bin" in next(c["reason"] for c in document["cases"] if c["result"] == "malformed")


@pytest.mark.parametrize(("limit", "code"), [(None, 0), ("0", 3), ("1", 0), ("0%", 3), ("99.5%", 0), ("100%", 0)])
def test_refusals_have_a_limit(limit: str | None, code: int, path: Path, done: Path, tmp_path: Path) -> None:
    command = script(tmp_path / "t.py", done, "refuse one")
    result = conform("run", path, "--target", command, *([] if limit is None else ["--max-refused", limit]))
    assert result.exit_code == code, result.output
    assert "1 not supported by the target" in result.stdout
    assert ("REFUSES TOO MUCH" in result.stdout) == (code == 3)


@pytest.mark.parametrize("limit", ["x", "-1", "%", "101%", "nan%", "1.5", "", "9" * 5000])
def test_limits_that_are_none_are_refused(limit: str, path: Path) -> None:
    assert conform("run", path, "--target", "profile:litert-ref", "--max-refused", limit).exit_code == 2


def test_a_folder_is_of_one_target_and_one_suite(path: Path, done: Path, tmp_path: Path) -> None:
    command, work = script(tmp_path / "t.py", done), tmp_path / "work"
    words = ("run", path, "--work", work, "--target")
    assert conform(*words, command).exit_code == 0
    assert conform(*words, command).exit_code == 0  # goes on
    other = script(tmp_path / "u.py", done)
    for wrong in (other, "profile:litert-ref", f"{command} --fast"):
        result = conform(*words, wrong)
        assert (result.exit_code, "another target" in result.stderr) == (2, True), result.output
    script(tmp_path / "t.py", done, "wrong")  # another program of the same name
    result = conform(*words, command)
    assert (result.exit_code, "changed" in result.stderr) == (2, True), result.output
    make_suite(str(tmp_path / "other.npz"), SuiteOrder(every=1000, seed=1))
    for verb in (
        ("check", tmp_path / "other.npz", work),
        ("run", tmp_path / "other.npz", "--work", work, *words[-1:], command),
    ):
        result = conform(*verb)
        assert (result.exit_code, "another suite" in result.stderr) == (2, True), result.output


def test_a_record_that_is_no_file_is_refused(path: Path, tmp_path: Path) -> None:
    precious, work = tmp_path / "precious.json", tmp_path / "work"
    precious.write_text("mine")
    assert conform("pack", path, "-o", work).exit_code == 0
    (work / "record.json").unlink()
    (work / "record.json").symlink_to(precious)
    result = conform("run", path, "--work", work, "--target", "profile:litert-ref")
    assert (result.exit_code, precious.read_text()) == (2, "mine"), result.output


def test_a_packed_folder_is_taken_by_one_target(path: Path, done: Path, tmp_path: Path) -> None:
    carried = tmp_path / "carried"
    assert conform("pack", path, "-o", carried).exit_code == 0
    result = conform("check", path, carried)  # nobody has filled it
    document = json.loads(conform("check", path, carried, "--json").stdout)
    assert (result.exit_code, document["counts"]["ended"]) == (1, len(cases(path)))
    first = cases(path)[0]
    for found in (done / first.id).glob("out*"):
        (carried / first.id / found.name).write_bytes(found.read_bytes())
    result = conform("run", path, "--work", carried, "--target", "profile:litert-ref")
    assert (result.exit_code, "another device" in result.stderr) == (2, True), result.output


@pytest.mark.slow
def test_a_baseline_accepts_a_case_as_it_was(path: Path, done: Path, tmp_path: Path) -> None:
    known = ("--baseline", tmp_path / "k.json")
    wrong = ("run", path, "--target", script(tmp_path / "t.py", done, "wrong"), *known)
    assert conform(*wrong, "--accept-until", "2999-12-31", "--reason", "x").exit_code == 0
    assert conform(*wrong).exit_code == 0
    script(tmp_path / "t.py", done, "wrong", 2)
    assert conform(*wrong).exit_code == 1
    script(tmp_path / "t.py", done, "refuse one")
    result = conform(*wrong)
    assert (result.exit_code, "no longer compared" in result.stderr) == (3, True), result.output


def test_what_is_left_of_a_case_that_was_not_done_is_forgotten(path: Path, done: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    assert conform("run", path, "--work", work, "--target", script(tmp_path / "t.py", done, "silent")).exit_code == 1
    case = next(c for c in cases(path) if not c.is_refused)
    (work / case.id / "out7_7.bin").write_bytes(b"old")
    assert conform("run", path, "--work", work, "--target", script(tmp_path / "t.py", done, "silent")).exit_code == 1
    assert not list((work / case.id).glob("out*"))


def test_verdicts_outlive_the_profile_of_the_suite(tmp_path: Path) -> None:
    """A profile's file may be gone when the suite is run: causes cannot be searched, and verdicts stay."""
    profile = tmp_path / "mine.yaml"
    profile.write_text("base: litert-ref\nabout: mine\n", encoding="utf-8")
    make_suite(str(tmp_path / "s.npz"), SuiteOrder(str(profile), every=900))
    profile.unlink()
    with pytest.warns(InputWarning, match="no causes are searched"):
        found = run_suite(str(tmp_path / "s.npz"), target_of("profile:litert-ref"))
    assert len(found.cases) > 0
    assert found.verdict == SuiteVerdict.PASSES
