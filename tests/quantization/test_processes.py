"""Work in several processes: the same results in order, what they tell, and what becomes of one that ends early."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest

import tflq
from support import suites
from tflq.errors import OptionError
from tflq.interrupts import Progress
from tflq.model.flatbuf import write
from tflq.model.ir import view
from tflq.quantization.frontier import available, check_jobs, each

HERE = os.getpid()

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def square(number: int, tell: Progress | None) -> tuple[int, bool]:
    time.sleep(0.02 * (3 - number % 4))
    return number**2, os.getpid() == HERE


def test_results_come_in_order_from_other_processes() -> None:
    assert list(each(square, range(7), 3, None)) == [(k**2, False) for k in range(7)]
    assert list(each(square, range(7), 1, None)) == [(k**2, True) for k in range(7)]


def failing(number: int, tell: Progress | None) -> int:
    if number == 2:
        raise ValueError("two")
    return number


def ended(number: int, tell: Progress | None) -> int:
    if number == 1 and os.getpid() != HERE:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_what_a_process_cannot_do_is_done_here() -> None:
    made: Iterator[int] = each(failing, range(4), 2, None)
    assert [next(made), next(made)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(made)
    assert list(each(ended, range(4), 2, None)) == [0, 1, 2, 3]


def chatty(number: int, tell: Progress | None) -> int:
    assert tell is not None
    time.sleep(0.6)  # longer than the least time between two tidings
    tell("counting", number, 9)
    return number


def test_what_processes_tell_is_heard() -> None:
    heard: list[tuple[str, int, int]] = []
    assert list(each(chatty, [3, 4], 2, lambda *told: heard.append(told))) == [3, 4]
    assert sorted(heard) == [("counting", 3, 9), ("counting", 4, 9)]


def sleeping(number: int, tell: Progress | None) -> int:
    time.sleep(600 * number)
    return number


def test_processes_end_with_who_waits_for_them() -> None:
    before = set(multiprocessing.active_children())
    results = each(sleeping, [0, 1, 1], 3, None)
    assert next(results) == 0
    assert set(multiprocessing.active_children()) > before
    results.close()  # type: ignore[attr-defined]
    assert set(multiprocessing.active_children()) == before


@pytest.mark.parametrize(("jobs", "supported"), [(0, True), (2, False)])
def test_what_cannot_be_is_refused(jobs: int, supported: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not supported:
        monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
        assert available() == 1
    with pytest.raises(OptionError, match="jobs"):
        check_jobs(jobs)


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "count"), [("fast", 12), ("fast", 80), ("balanced", 24)])
def test_the_result_is_the_same_for_any_number_of_processes(
    preset: str, count: int, capfd: pytest.CaptureFixture[str]
) -> None:
    golden = suites.ROOT / "golden" / "models"
    images = suites.digits().images[:count]
    path = golden / "digits_autoencoder_float.tflite"
    graph = view(tflq.load(path))
    rows = list(images.reshape(count, *graph.tensors[graph.inputs[0]].shape))
    alone, together = (tflq.quantize(path, rows, preset, jobs=jobs) for jobs in (1, 3))
    assert capfd.readouterr().err == ""  # a process that fails says so, and its work is done again here
    assert write(together.model) == write(alone.model)
    assert [(c.methods, c.left, c.error) for c in together.report.ranking] == [
        (c.methods, c.left, c.error) for c in alone.report.ranking
    ]
    for one, other in zip(alone.report.ranking, together.report.ranking, strict=True):
        assert (one.score is None) == (other.score is None)
        if one.score is not None and other.score is not None:
            np.testing.assert_array_equal(one.score.losses, other.score.losses)
