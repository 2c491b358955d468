"""Ctrl-C during lazy imports and compilations: it arrives, and the process can compute afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support import suites
from tflq.interrupts import import_whole, uninterrupted

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
#: Interrupts the import of module number {at} of those whose names begin so, runs the model, and runs it again.
PROGRAM = """
import signal, sys
import numpy as np

class Interrupting:
    count = 0
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {packages!r}:
            Interrupting.count += 1
            if Interrupting.count == {at}:
                signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())

def result():
    import tflq
    interpreter = tflq.Interpreter(model_path={model!r})
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()[0]
    interpreter.set_tensor(details["index"], np.full(details["shape"], 7, details["dtype"]))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist()

caught = 0
try:
    result()
except KeyboardInterrupt:
    caught = 1
print(caught, result())
"""

#: A function that has to be compiled: machine code of others may be there.
COMPILING = """
def result():
    from tflq.engine.jit.compiled import compiled
    return compiled(triple)(4)

def triple(x):
    return x * 3
"""


def run(packages: tuple[str, ...], at: int, source: str = PROGRAM, **environment: str) -> str:
    program = source.format(packages=packages, at=at, model=str(MODEL))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def expected() -> str:
    """Return the result of a run that is not interrupted."""
    return run(("none",), 1).removeprefix("0 ")


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 40, 150, 250])
def test_an_interrupted_import_of_numba(at: int, tmp_path: Path) -> None:
    before, _, rest = PROGRAM.partition("\ndef result():")
    program = before + COMPILING + rest[rest.index("\ncaught") :]
    assert run(("numba", "llvmlite"), at, program, NUMBA_CACHE_DIR=str(tmp_path)) == "1 12\n"


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 30, 90, 120])
def test_an_interrupted_import_of_tflq(at: int, expected: str) -> None:
    assert run(("tflq",), at) == f"1 {expected}"


def test_the_signal_comes_after_the_context() -> None:
    steps = []

    def interrupted() -> None:
        with uninterrupted():
            with uninterrupted():
                signal.raise_signal(signal.SIGINT)
                steps.append("inner")
            steps.append("outer")
        steps.append("never")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_errors_pass_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(ModuleNotFoundError):
        import_whole("tflq.no_such_module")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_other_threads_import_as_ever() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(import_whole("json")))
    thread.start()
    thread.join()
    assert found[0].__name__ == "json"
