"""The installed command, as a shell runs it: what it imports, what it prints where."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from support import suites
from tflq.devices.grids import FOCUSES
from tflq.face.cli import conform
from tflq.face.cli.make import quantize_command
from tflq.quantization.recipe import Norms

MODEL = str(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite")
SHOW = """
import sys; from tflq.face.cli.main import main
try: main()
finally: print(*sorted(sys.modules), file=sys.stderr)
"""


def tflq(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SHOW, *words],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_inspect_never_imports_a_compiler_or_a_runtime() -> None:
    done = tflq("inspect", MODEL)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert {"numba", "llvmlite", "ai_edge_litert", "tensorflow"} & loaded == set()
    assert "CONV_2D" in done.stdout


def test_help_imports_no_numpy() -> None:
    done = tflq("--help")
    assert done.returncode == 0
    assert {"numpy", "numba", "rich"} & set(done.stderr.split()) == set()


def test_inspect_imports_little() -> None:
    """Most of the time that it takes goes into imports."""
    loaded = tflq("inspect", MODEL).stderr.split()
    assert len(loaded) < 540
    assert sum(name.startswith("tflq") for name in loaded) < 275


def test_piped_tables_are_not_cut_and_have_no_colour() -> None:
    done = tflq("inspect", MODEL, COLUMNS="60")
    rows = [line for line in done.stdout.splitlines() if "CONV_2D" in line]
    assert rows
    assert all("[" in row for row in rows)
    assert "\x1b" not in done.stdout


def test_a_closed_pipe_is_no_failure() -> None:
    command = f'("{sys.executable}" -m tflq.face.cli.main inspect "{MODEL}" --json; echo "exit $?" >&2) | head -1'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{\n", "exit 0\n")


def test_choices_that_help_writes_out_are_the_library_s() -> None:
    """Help loads no NumPy, and so cannot ask the library for them."""
    norms = next(option for option in quantize_command.params if option.name == "norms")
    assert isinstance(norms.type, click.Choice)
    assert list(norms.type.choices) == [one.value for one in Norms]
    assert tuple(conform.FOCUSES) == tuple(FOCUSES)
