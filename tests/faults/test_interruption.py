"""Ctrl-C ends every stage of a run after little more work, with exit code 130 and one line."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.graphs import Graph, Op, build
from support.single_op import T

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="counts the work of a child as Linux tells it"),
]

#: Runs a verb, and says when the stage begins.
PROGRAM = """
import importlib, sys
module, owner, name = sys.argv[1].split(":")
from tflq.face.cli.main import main
place = importlib.import_module(module)
place = getattr(place, owner) if owner else place
begin = getattr(place, name)
def begun(*words, **options):
    print("begun", flush=True)
    return begin(*words, **options)
setattr(place, name, begun)
sys.argv = ["tflq", *sys.argv[2:]]
main()
"""
#: Stages, by what each begins with.
READING = "tflq.model.flatbuf.reader:_Reader:root"
PLANNING = "tflq.engine.interpreter.planning::check_order"
EVALUATING = "tflq.engine.interpreter.execution:Execution:run"
#: Seconds of processor time that a stage has had when the signal comes, and that may pass after it.
BEFORE, AFTER = 0.1, 2.0


def many_operators() -> bytes:
    """Little work, but a long way through reading and planning."""
    x, count = T("float32", (1,)), 8_000
    ops = [Op("ABS", (i,), (i + 1,)) for i in range(count)]
    return build(Graph([x] * (count + 1), (0,), (count,), ops))


def wide_windows() -> bytes:
    """One operator of 1e11 additions."""
    pool = {"padding": 0, "stride_w": 1, "stride_h": 1, "filter_width": 240, "filter_height": 240}
    image = T("float32", (1, 1300, 1300, 1))
    return build(Graph([image, image], (0,), (1,), [Op("AVERAGE_POOL_2D", (0,), (1,), ("Pool2DOptions", pool))]))


def endless_loop() -> bytes:
    """A WHILE that never ends."""
    x, true = T("float32", (1,)), T("bool", (1,), value=np.array([True]))
    loop = Op("WHILE", (0,), (1,), ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2}))
    body = Graph([x, x], (0,), (1,), [Op("ABS", (0,), (1,))])
    return build(Graph([x, x], (0,), (1,), [loop]), Graph([x, true], (0,), (1,)), body)


@pytest.mark.parametrize(
    ("stage", "model", "samples"),
    [
        (READING, many_operators, 1),
        (PLANNING, many_operators, 1),
        (EVALUATING, wide_windows, 1),
        (EVALUATING, wide_windows, 9),
        (EVALUATING, endless_loop, 1),
        (EVALUATING, endless_loop, 9),
    ],
    ids=["reading", "planning", "a long kernel", "long kernels in threads", "an endless loop", "loops in turn"],
)
def test_it_ends_soon_after_the_signal(stage: str, model: Callable[[], bytes], samples: int, tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(model())
    words = ["run", str(tmp_path / "m.tflite"), "-o", str(tmp_path / "out.npz"), "--work-limit", str(10**18)]
    words += ["--samples", str(samples)]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, stage, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("begun")  # threads may say it at once
        wait_for_work(process.pid, BEFORE)
        before = work_of(process.pid)
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 130, told
    assert told == "tflq: interrupted\n"
    assert not (tmp_path / "out.npz").exists()
    after = seconds(usage) - before
    print(f"{after:.2f} s of work after the signal")
    assert after < AFTER


def wait_for_work(process: int, amount: float) -> None:
    """Return when the process has worked for that many seconds more."""
    end = work_of(process) + amount
    while work_of(process) < end:
        time.sleep(0.01)


def work_of(process: int) -> float:
    """Seconds of processor time that a running process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def seconds(usage: resource.struct_rusage) -> float:
    """Seconds of processor time that a process took."""
    return usage.ru_utime + usage.ru_stime
