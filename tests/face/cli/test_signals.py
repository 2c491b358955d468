"""What asks the command to end ends it tidily: its exit code, one line, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import suites
from support.processes import RUNTIME, SLEEPING, Busy

MODEL = str(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


@pytest.mark.slow
@pytest.mark.parametrize("document", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(
    ("number", "code", "line"), [(signal.SIGINT, 130, "tflq: interrupted"), (signal.SIGTERM, 143, "tflq: terminated")]
)
def test_a_signal_ends_it_and_its_child(
    tmp_path: Path, number: signal.Signals, code: int, line: str, document: bool
) -> None:
    family = Busy(tmp_path, "ai_edge_litert/interpreter.py", RUNTIME.format(busy=SLEEPING))
    words = ["-m", "tflq.face.cli.main", "record", MODEL, "-o", str(tmp_path / "out.npz"), *["--json"] * document]
    process = family.start(*words, "--python")
    process.send_signal(number)
    assert process.wait() == code
    assert family.told.read_text() == line + "\n"
    assert family.alive() == []
    assert family.left() == []
    assert not (tmp_path / "out.npz").exists()


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As `nohup` and a shell's background jobs ask for."""
    program = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); from tflq.face.cli import main as m\n"
    )
    program += "m.cli = lambda: os.kill(os.getpid(), signal.SIGINT); m.main()"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
