"""Progress as lines: now and then, with what is left."""

from __future__ import annotations

import threading
import time

import pytest

from tflq.face.report import progress
from tflq.face.report.progress import Lines, progress_bar


def test_a_line_comes_after_a_second_and_every_ten_and_says_what_is_left() -> None:
    clock, lines = [0.0], list[str]()
    told = Lines(lambda: clock[0], lines.append)
    for second in range(41):
        clock[0] = float(second)
        told(f"sample {second}", second, 80)
    assert lines == [
        "tflq: sample 1, 1 s gone, 1% done, about 79 s left",
        "tflq: sample 11, 11 s gone, 14% done, about 69 s left",
        "tflq: sample 21, 21 s gone, 26% done, about 59 s left",
        "tflq: sample 31, 31 s gone, 39% done, about 49 s left",
    ]


def test_short_work_is_not_estimated() -> None:
    clock, lines = [0.0], list[str]()
    told = Lines(lambda: clock[0], lines.append)
    for second in range(10):
        clock[0] = float(second)
        told("running", second, 9)
    assert lines == []


def test_another_total_begins_anew_and_an_unknown_one_guesses_nothing() -> None:
    clock, lines = [0.0], list[str]()
    told = Lines(lambda: clock[0], lines.append)
    told("observing", 1, 0)
    clock[0] = 10
    told("observing\x1b[2J", 2, 0)
    clock[0] = 20
    told("comparing", 1, 10)
    clock[0] = 30
    told("comparing", 3, 10)
    assert lines == [
        "tflq: observing\\x1b[2J, 10 s gone",
        "tflq: comparing, 20 s gone",
        "tflq: comparing, 30 s gone, 30% done, about 35 s left",
    ]


def test_only_lines_that_are_asked_for_are_written() -> None:
    for quiet in (False, True):
        with progress_bar(quiet=quiet) as told:
            told("observing", 1, 2)
    with progress_bar(lines=True) as told:
        assert isinstance(told, Lines)
    with progress_bar(lines=True, quiet=True) as told:
        assert not isinstance(told, Lines)


def test_a_long_step_repeats_its_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.02)
    before = threading.active_count()
    with progress.progress_bar(lines=True) as told:
        told("asking 8 models", 1, 4)
        deadline = time.monotonic() + 10
        printed = ""
        while printed.count("\n") < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
            printed += capsys.readouterr().err
    assert printed.count("tflq: asking 8 models, ") >= 3
    assert threading.active_count() == before
