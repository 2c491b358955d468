"""Children end with their parent, whatever ends it, and leave nothing on disk."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from support.processes import COMPUTING, DIRECT, RUNTIME, SLEEPING, WRAPPED, Busy, Family, wait_until
from support.pythons import fake_python
from tflq.engine.runtimes import by_name
from tflq.engine.runtimes.process import feed, nameless_file, started, temporary_folder
from tflq.errors import FileAccessError, RuntimeFailed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and stand-ins are POSIX")

PARENT = "import sys\nfrom tflq.engine.runtimes import by_name\n" + (
    "by_name('litert-ref', python=sys.argv[1]).run([b'model'], [()])"
)

#: A TensorFlow that never comes back from reading a model, with a file half written.
TENSORFLOW = """
import os, time
from types import SimpleNamespace
class Model:
    def export(self, folder, verbose):
        os.makedirs(folder)
        open(folder + "/part", "w").close()
        open(os.environ["BUSY"], "w").close()
        time.sleep(3600)
keras = SimpleNamespace(models=SimpleNamespace(load_model=lambda *words, **options: Model()))
"""
CONVERTING = (
    "import sys; from tflq.engine.runtimes.conversion import conversions; next(conversions({path!r}, sys.argv[1]))"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("python", "busy"),
    [
        pytest.param(DIRECT, SLEEPING, id="sleeping"),
        pytest.param(WRAPPED, SLEEPING, id="sleeping, below a shell"),
        pytest.param(
            DIRECT,
            COMPUTING,
            id="computing",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's help"),
        ),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_runtime_ends_with_its_parent(tmp_path: Path, python: str, busy: str, number: signal.Signals) -> None:
    family = Busy(tmp_path, "ai_edge_litert/interpreter.py", RUNTIME.format(busy=busy))
    parent = family.start("-c", PARENT, python=python)
    assert len(family.alive()) >= 2
    assert family.left() == []
    parent.send_signal(number)
    parent.wait()
    wait_until(family.ends, "the runtime outlives its parent")
    assert family.left() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_conversion_ends_with_its_parent_and_removes_its_files(tmp_path: Path, number: signal.Signals) -> None:
    family = Busy(tmp_path, "tensorflow/__init__.py", TENSORFLOW)
    (tmp_path / "m.keras").touch()
    parent = family.start("-c", CONVERTING.format(path=str(tmp_path / "m.keras")), python=DIRECT)
    assert family.left()
    parent.send_signal(number)
    parent.wait()
    wait_until(family.ends, "the conversion outlives its parent")
    assert family.left() == []


def test_what_a_child_started_is_killed_with_it(tmp_path: Path) -> None:
    family = Family(tmp_path)
    with started("sleep 3600; true", shell=True, env=family.environment):
        wait_until(lambda: "sleep 3600" in family.alive(), "the shell starts nothing")
    wait_until(lambda: not family.alive(), "it goes on sleeping")


def test_a_child_that_never_reads_its_job(tmp_path: Path) -> None:
    """More than a pipe holds: the wait for its end must not become a wait for its reading."""
    python = fake_python(tmp_path, "exec sleep 3600")
    with pytest.raises(RuntimeFailed, match=r"no end after 0\.2 s while starting"):
        by_name("litert-ref", python=python, timeout=0.2).run([bytes(1 << 20)], [()])


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    for make in (nameless_file, temporary_folder):
        with pytest.raises(FileAccessError, match="temporary files: No such file"):
            make()


def test_a_child_may_end_before_its_job_is_sent() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    job, pipe = nameless_file(), os.fdopen(writer, "wb")
    with job as file:
        file.write(b"job")
        feed(pipe, file)  # a broken pipe
    feed(pipe, file)  # closed files
    pipe.raw.close()
    feed(pipe, file)
