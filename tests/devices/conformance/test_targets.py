"""Targets that misbehave: a flood of output, and programs that leave the group of their target."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.processes import wait_until
from tflq.devices.suites import jobs
from tflq.devices.suites.jobs import MODEL, REFUSED, CaseFolder, MemoryUse
from tflq.devices.suites.make import Case
from tflq.devices.suites.target import CommandTarget, finish
from tflq.errors import RuntimeFailed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sessions are POSIX")


def ended(tmp_path: Path, program: str, timeout: float = 60) -> str:
    """Return how the call of a target ends that is a Python program."""
    return CommandTarget("t", (sys.executable, "-c", program), timeout).do(CaseFolder(tmp_path), ())


def test_a_flood_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_PRINTED", 1 << 20)
    assert "printed more than" in ended(tmp_path, "import sys\nwhile True: sys.stdout.write('x' * 65536)")
    assert ended(tmp_path, "print('x' * 1000)") == ""
    assert "printed more than" in ended(tmp_path, "print('x' * (2 << 20))")


def test_the_last_words_are_kept(tmp_path: Path) -> None:
    how = ended(tmp_path, "import sys; print('x' * 100000); print('no device', file=sys.stderr); sys.exit(3)")
    assert how.startswith("exit status 3: ")
    assert how.endswith("no device")
    assert ended(tmp_path, "import os; os.kill(os.getpid(), 9)") == "signal 9"
    assert ended(tmp_path, "import time; time.sleep(100)", 0.2) == "no end after 0.2 s"


LEAVING = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({file!r}, "w").write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
while not os.path.exists({file!r}) or not open({file!r}).read():
    time.sleep(0.01)
{rest}
"""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system has no /proc")
@pytest.mark.parametrize("rest", ["", "sys.exit(2)", "time.sleep(1000)", "os.kill(os.getpid(), 9)"])
def test_programs_that_leave_the_group_end_with_the_target(tmp_path: Path, rest: str) -> None:
    file = tmp_path / "pid"
    ended(tmp_path, LEAVING.format(file=str(file), rest=rest), 3)
    pid = int(file.read_text())
    wait_until(lambda: not is_alive(pid), "the end of a program that left its group")


class Silent:
    """A target whose calls all end alike, without an answer, and are counted; one case is answered if it is named."""

    name = "silent"

    def __init__(self, how: str, answered: str = "") -> None:
        self.how, self.answered, self.calls = how, answered, 0

    def identity(self) -> dict[str, str]:
        return {}

    def do(self, job: CaseFolder, cases: Sequence[Case]) -> str:
        self.calls += 1
        for case in cases:
            if case.id == self.answered:
                (job.folder / case.id / REFUSED).write_text("no")
        return self.how


def cases(job: CaseFolder, count: int) -> list[Case]:
    found = [Case(f"{k:05}-add", "ADD", "int8", "smoke", "", (), "", (), ((),)) for k in range(count)]
    for case in found:
        (job.folder / case.id).mkdir()
        (job.folder / case.id / MODEL).touch()
    return found


@pytest.mark.parametrize(
    ("how", "calls"), [("exit status 3: no device", 2), ("exit status 127: not found", 1), ("signal 11", 8)]
)
def test_a_target_that_never_starts_ends_the_run(tmp_path: Path, how: str, calls: int) -> None:
    job, target = CaseFolder(tmp_path), Silent(how)
    with pytest.raises(RuntimeFailed, match="silent"):
        finish(target, job, MemoryUse(), cases(job, 100), 50, is_first=True)
    assert target.calls == calls


def test_a_target_that_answered_a_case_is_asked_to_the_end(tmp_path: Path) -> None:
    job = CaseFolder(tmp_path)
    target = Silent("exit status 3", answered="00000-add")
    endings = finish(target, job, MemoryUse(), cases(job, 20), 50, is_first=True)
    assert len(endings.by_case) == 19


def test_a_target_that_was_called_before_is_asked_to_the_end(tmp_path: Path) -> None:
    job = CaseFolder(tmp_path)
    assert len(finish(Silent("exit status 3"), job, MemoryUse(), cases(job, 20), 50).by_case) == 20
