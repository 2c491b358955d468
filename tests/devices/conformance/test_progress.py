"""Progress: lines in pipes, and a signal that ends a run with what is known by then."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tflq.devices.suites import run
from tflq.devices.suites.run import SuiteOrder, make_suite, run_suite
from tflq.devices.suites.target import target_of

#: A target that refuses some cases and then hangs.
HANGS = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[-1])
for name in (folder / "cases.txt").read_text().split()[:3]:
    (folder / name / "refused.txt").write_text("no")
(folder / "hangs").touch()
time.sleep(600)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("suite") / "suite.npz")
    make_suite(place, SuiteOrder(every=300))
    return place


def test_a_slow_call_is_reported_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_LOOK", 0.01)
    heard: list[tuple[str, int, int]] = []
    with run.watch(lambda *words: heard.append(words), "running", lambda: 2, 5):
        end = time.monotonic() + 10
        while not heard and time.monotonic() < end:
            time.sleep(0.01)
    assert heard[0] == ("running", 2, 5)


@pytest.mark.slow
def test_runs_and_suites_report_progress(path: str, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    make_suite(str(tmp_path / "s.npz"), SuiteOrder(every=2000), tell=lambda *words: heard.append(words))
    assert heard[0][1] == 0
    assert heard[-1][1] == heard[-1][2]
    run_suite(path, target_of("profile:litert-opt"), tell=lambda *words: heard.append(words))
    assert any(what == "searching causes" for what, _, _ in heard)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("form", ["--json", "-q"])
def test_a_signal_ends_a_run_with_what_is_known(
    number: signal.Signals, code: int, form: str, path: str, tmp_path: Path
) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    work, junit = tmp_path / "work", tmp_path / "j.xml"
    words = [sys.executable, "-m", "tflq.face.cli.main", "conform", "run", path, "--work", str(work), form]
    words += ["--target", f"{sys.executable} {tmp_path / 'hangs.py'}", "--junit", str(junit)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        end = time.monotonic() + 120
        while not (work / "hangs").exists() and time.monotonic() < end:
            time.sleep(0.05)
        child.send_signal(number)
        out, err = child.communicate(timeout=120)
    assert child.returncode == code, err
    assert 'errors="1"' in junit.read_text()
    if form == "-q":
        assert out.startswith("INTERRUPTED")
        assert out.count("\n") == 1
        return
    document = json.loads(out)
    assert (document["verdict"], document["counts"]["refused"]) == ("interrupted", 3)
    assert document["left"] > 0


def test_a_signal_in_the_first_target_of_a_diff_runs_no_second(path: str, tmp_path: Path) -> None:
    first, second = tmp_path / "hangs.py", tmp_path / "second.py"
    first.write_text(HANGS.replace('folder / "hangs"', f'pathlib.Path({str(tmp_path)!r}) / "hangs"'))
    second.write_text(f"import pathlib; pathlib.Path({str(tmp_path)!r}, 'ran').touch()")
    words = [sys.executable, "-m", "tflq.face.cli.main", "conform", "diff", "--suite", path]
    for option, program in (("--before", first), ("--after", second)):
        words += [option, f"{sys.executable} {program}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        end = time.monotonic() + 120
        while not (tmp_path / "hangs").exists() and time.monotonic() < end:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert child.returncode == 130, err
    assert not out
    assert not (tmp_path / "ran").exists()
