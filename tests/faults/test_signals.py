"""A signal at any moment leaves no partial file, no process and no temporary file; SIGINT and SIGTERM are told so."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from support.processes import Family, wait_until
from tflq.model.ir import view

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="counts and signals as Linux has them"),
]

MODELS = suites.ROOT / "golden" / "models"
INTEGER, FLOAT = str(MODELS / "digits_autoencoder_int8.tflite"), str(MODELS / "digits_autoencoder_float.tflite")
#: Moments are counted in what the interpreter tells its audit hooks of: files, imports, processes, threads, renames.
PROGRAM = """
import os, sys
number, moment, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
from tflq.face.cli import main as command
seen, started = 0, False
def hook(event, arguments):
    global seen
    seen += started
    if started and seen == moment:
        os.kill(os.getpid(), number)
sys.addaudithook(hook)
def begin(cli=command.cli):
    global started
    started = True
    try:
        cli()
    finally:
        started = False
        if moment == 0:
            print("moments", seen, file=sys.stderr)
command.cli = begin
sys.argv = ["tflq", *words]
command.main()
"""
ENDINGS = {
    signal.SIGINT: (130, "tflq: interrupted\n"),
    signal.SIGTERM: (143, "tflq: terminated\n"),
    signal.SIGKILL: (-9, ""),
}
MOMENTS = 10


def load_golden(path: Path) -> None:
    with np.load(path, allow_pickle=False) as entries:
        assert dict(entries)


def load_model(path: Path) -> None:
    tflq.load(path)


def load_page(path: Path) -> None:
    assert path.read_text().rstrip().endswith(("</testsuites>", "</testsuite>"))


#: verb -> (its arguments, to which the output is added; the output's name; what reads it if it is complete)
VERBS: dict[str, tuple[list[str], str, Callable[[Path], None]]] = {
    "record": (["record", INTEGER, "--all-tensors", "-o"], "golden.npz", load_golden),
    "verify": (["verify", INTEGER, "--against", "litert-ref", "--junit"], "report.xml", load_page),
    "quantize": (
        ["quantize", "--quiet", FLOAT, "--calibration", "{samples}", "--recipe", "fast", "-o"],
        "integer.tflite",
        load_model,
    ),
}


class Command:
    """One verb on a small model, in folders of its own."""

    def __init__(self, verb: str, folder: Path) -> None:
        words, name, self._check = VERBS[verb]
        self._family, self._folder = Family(folder), folder / "outputs"
        self._folder.mkdir()
        self._output = self._folder / name
        samples = folder / "samples.npy"
        shape = view(tflq.load(FLOAT)).tensors[view(tflq.load(FLOAT)).inputs[0]].shape
        np.save(samples, np.random.default_rng(0).random((8, *shape[1:]), np.float32))
        self._words = [*(word.format(samples=samples) for word in words), str(self._output)]

    def run(self, number: int, moment: int) -> tuple[int, str]:
        """The exit code and what was said, when that signal came at that moment (0: none came)."""
        self._output.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(number), str(moment), *self._words],
            env=self._family.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    def without_written(self, told: str) -> str:
        """Standard error without the line on the output, which is printed only if that is there."""
        written = [line for line in told.splitlines() if line.startswith("wrote ")]
        assert not written or self._output.exists()
        return "".join(f"{line}\n" for line in told.splitlines() if line not in written)

    def leaves_nothing(self) -> None:
        """No process, no temporary file, and an output that is whole where there is one."""
        wait_until(lambda: not self._family.alive(), "a process goes on")
        assert self._family.left() == []
        assert {path.name for path in self._folder.iterdir()} <= {self._output.name}
        if self._output.exists():
            self._check(self._output)


@pytest.mark.parametrize("verb", VERBS)
def test_signals_at_ten_moments(verb: str, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    command = Command(verb, tmp_path)
    command.run(0, 0)  # compiles what is not compiled yet
    code, told = command.run(0, 0)
    assert code == 0, told
    moments = int(told.split()[-1])
    command.leaves_nothing()
    chance, early = random.Random(verb), 0
    for turn in range(MOMENTS):
        number = list(ENDINGS)[turn % len(ENDINGS)]
        moment = chance.randrange(1, moments)
        code, told = command.run(number, moment)
        told = command.without_written(told)
        assert (code, told) == ENDINGS[number] or code == 0, (verb, number, moment, moments)
        early += code != 0
        command.leaves_nothing()
    assert early > MOMENTS / 2
