"""Processes under test: which of them are still there, and what they left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil

from support.pythons import fake_python

#: A runtime that never comes back from reading a model.
RUNTIME = """
import os, time
class OpResolverType: BUILTIN_REF = 0
class Interpreter:
    def __init__(self, **options):
        open(os.environ["BUSY"], "w").close()
        {busy}
"""
SLEEPING, COMPUTING = "time.sleep(3600)", "sum(range(1 << 60))"  # the latter without giving another thread a chance
#: Shell scripts that stand in for the Python of a runtime.
DIRECT, WRAPPED = 'exec "{python}" "$@"', '"{python}" "$@"; exit $?'

#: Seconds after which something that has to happen is taken not to happen. Nothing depends on how soon it does.
PATIENCE, PAUSE = 120, 0.02


class Family:
    """A process, and all that it and its children start: they inherit a variable of the environment.

    `environment` is theirs: temporary files go to `temporary`, an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._mark = uuid.uuid4().hex
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.environment = {**os.environ, "TFLQ_TEST_FAMILY": self._mark, "TMPDIR": str(self.temporary)}

    def alive(self) -> list[str]:
        """The command lines of those that run."""
        lines = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("TFLQ_TEST_FAMILY") == self._mark and process.status() != "zombie":
                    lines.append(" ".join(process.cmdline()))
            except psutil.Error:  # it has just ended, or is another user's
                continue
        return lines

    def left(self) -> list[str]:
        """Names in the folder of temporary files."""
        return sorted(os.listdir(self.temporary))


def wait_until(happened: Callable[[], bool], what: str) -> None:
    """Wait for something to happen; TimeoutError where it does not."""
    for _ in range(round(PATIENCE / PAUSE)):
        if happened():
            return
        time.sleep(PAUSE)
    raise TimeoutError(what)


class Busy(Family):
    """A parent whose child is busy for good: `package` is a file of a package, `source` what stands in it."""

    def __init__(self, folder: Path, package: str, source: str) -> None:
        super().__init__(folder)
        self._folder, self._busy = folder, folder / "busy"
        self.told = folder / "told.txt"
        path = folder / "packages" / package
        path.parent.mkdir(parents=True)
        path.write_text(source)
        (path.parent / "__init__.py").touch()
        packages = str(folder / "packages")
        self.environment |= {"BUSY": str(self._busy), "PYTHONPATH": packages}

    def start(self, *words: str, python: str = DIRECT) -> subprocess.Popen[bytes]:
        """The parent, a Python with these arguments and the path of its child's Python; the child is busy already."""
        wrapper = fake_python(self._folder, python.format(python=sys.executable))
        with self.told.open("w") as told:
            parent = subprocess.Popen([sys.executable, *words, wrapper], env=self.environment, stdout=told, stderr=told)
        wait_until(lambda: self._busy.exists() or parent.poll() is not None, "the child does not get that far")
        assert parent.poll() is None, self.told.read_text()
        return parent

    def ends(self) -> bool:
        """Whether nothing of it runs any more."""
        return not self.alive()
