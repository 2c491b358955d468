"""`tflq bench`: its report, its document, its page, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import Result

from support import commands, suites
from support.commands import validate
from support.pythons import fake_python
from tflq.engine.runtimes.timed import Contestant

SMALL = suites.ROOT / "golden" / "singleop" / "models" / "tie_conv_i8_0.tflite"


def tflq(*words: object) -> Result:
    return commands.tflq("bench", *words)


def checked(text: str) -> dict:
    found: dict = json.loads(text)
    validate(found, "bench")
    return found


@pytest.mark.slow
def test_text_and_page(tmp_path: Path) -> None:
    page = tmp_path / "bench.html"
    done = tflq(SMALL, "--against", "none", "--seconds", 0, "--html", page)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert ": tflq (litert-ref) " in lines[0]
    assert any(line.split()[:2] == ["side", "median"] for line in lines)
    assert any("0  CONV_2D" in line for line in lines)
    written = page.read_text()
    assert "time to the first result" in written
    assert "multiply-accumulates a second" in written


def test_a_document_of_sides_and_failures(tmp_path: Path) -> None:
    python = fake_python(tmp_path, "kill -SEGV $$")
    done = tflq(SMALL, "--against", "litert-opt", "--python", python, "--runs", 5, "--json")
    assert done.exit_code == 4, done.output
    (case,) = checked(done.stdout)["cases"]
    ours, theirs = case["sides"]
    assert (ours["kind"], theirs["kind"]) == ("profile", "runtime")
    assert ours["invokes"] >= 5
    assert "SIGSEGV" in theirs["failure"]
    assert (theirs["median"], theirs["ratio"], theirs["bits"]) == (None, None, "not compared")


def test_what_was_timed_is_printed_when_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Contestant.burst
    turns: list[float] = []

    def burst(self: Contestant, seconds: float) -> tuple[list[float], int]:
        turns.append(seconds)
        if len(turns) > 2:
            raise KeyboardInterrupt
        return timed(self, seconds)

    monkeypatch.setattr(Contestant, "burst", burst)
    done = tflq(SMALL, "--against", "none")
    assert done.exit_code == 130, done.output
    assert done.stdout.startswith("INTERRUPTED ")
    assert ": tflq (litert-ref) " in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["missing.tflite"], 2, "missing.tflite: No such file"),
        ([SMALL, "--against", "bla"], 2, "no runtime 'bla'"),
        ([SMALL, "--profile", "bla"], 2, "no profile 'bla'"),
        ([SMALL, "--against", "none", "--against", "litert-ref"], 2, "none excludes"),
        ([SMALL, "--seconds", "-1"], 2, "--seconds"),
        ([SMALL, "--signature", "bla"], 2, "no signature 'bla'"),
        ([SMALL, SMALL, "--html", "x.html"], 2, "for one model only"),
        ([SMALL, "--against", "litert-ref", "--python", "/no/python"], 4, "no Python at"),
    ],
)
def test_what_is_refused(words: list[str], code: int, says: str) -> None:
    done = tflq(*words)
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert says in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_leaves_what_was_timed() -> None:
    words = [sys.executable, "-m", "tflq", "bench", str(SMALL), "--against", "none", "--seconds", "600", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        end = time.monotonic() + 120
        while time.monotonic() < end and not _children(child.pid):
            time.sleep(0.1)
        time.sleep(8)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, err.strip()) == (130, "tflq: interrupted")
    if out:  # on a slow machine, nothing was timed yet
        assert checked(out)["interrupted"] is True


def _children(pid: int) -> list[str]:
    found: list[str] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += task.read_text().split()
    return found
