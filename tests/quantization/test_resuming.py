"""Runs that were stopped go on where they stopped: the same file, less work, and no other run's journal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.float_graphs import FloatGraph
from tflq.errors import CalibrationError, InputError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model
from tflq.quantization import frontier
from tflq.quantization import frontier as runner
from tflq.quantization.judge.journal import Journal, Ranked, Score, entry_of, rank_from
from tflq.quantization.recipe import BiasCorrection, Methods, Ranging, Recipe, RecipeBudget, Refining, Search, Watch
from tflq.quantization.result import Result

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"


def small() -> Model:
    """Two layers and a SOFTMAX."""
    g = FloatGraph(4)
    options = {"fused_activation_function": 1, "keep_num_dims": False}
    x = g.op("FULLY_CONNECTED", [g.given(1, 16), g.weights(24, 16), g.bias(24)], options)[0]
    x = g.op("FULLY_CONNECTED", [x, g.weights(5, 24), g.bias(5)], {**options, "fused_activation_function": 0})[0]
    g.op("SOFTMAX", [x], {"beta": 1.0})
    return read(write(g.model()))


FLOAT = small()
RECIPE = Recipe(
    candidates=(
        Methods(),
        Methods(ranging=Ranging(Watch.MOVING_AVERAGE)),
        Methods(0.5, Ranging(Watch.HISTOGRAM, activations=Search())),
        Methods(refining=Refining(bias=BiasCorrection.EMPIRICAL)),
    ),
    turns=2,
)


def rows(count: int = 64) -> list[list[np.ndarray]]:
    random = np.random.default_rng(0)
    return [[random.normal(0, 1, (1, 16)).astype(np.float32)] for _ in range(count)]


@pytest.fixture
def operators_run(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number that grows with every operator that is run in this process."""
    count = [0]
    run, run_step = runner.run, frontier.run_step

    def counted_run(plan: Any, *rest: Any, **more: Any) -> Any:
        count[0] += len(plan.steps)
        return run(plan, *rest, **more)

    def counted_step(*given: Any) -> Any:
        count[0] += 1
        return run_step(*given)

    monkeypatch.setattr(runner, "run", counted_run)
    monkeypatch.setattr(frontier, "run_step", counted_step)
    return count


def stopped(journal: Path, entries: int, **options: Any) -> None:
    """A run that is interrupted once the journal has so many entries."""

    def interrupt(what: str, done: int, total: int) -> None:
        if journal.exists() and len(journal.read_bytes().splitlines()) > entries:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tflq.quantize(FLOAT, rows(), RECIPE, interrupt, resume=journal, **options)
    assert journal.exists()


def facts(result: Result) -> tuple[bytes, list[Any]]:
    """The file, and how all candidates did to the last bit."""
    return write(result.model), [(r.methods, r.left, r.error, entry_of(r)) for r in result.report.ranking]


@pytest.mark.slow
@pytest.mark.parametrize("entries", [1, 4, 6, 8])  # in the heat, in the first turn, in the second
def test_an_interrupted_run_goes_on_to_the_same_file_with_less_work(
    entries: int, tmp_path: Path, operators_run: list[int]
) -> None:
    anew = tflq.quantize(FLOAT, rows(), RECIPE)
    whole = operators_run[0]
    journal = tmp_path / "run.journal"
    stopped(journal, entries)
    before = operators_run[0]
    resumed = tflq.quantize(FLOAT, rows(), RECIPE, resume=journal)
    assert facts(resumed) == facts(anew)
    assert operators_run[0] - before < whole
    assert not journal.exists()


@pytest.mark.slow
def test_sensitivities_and_trials_of_a_budget_are_not_made_again(tmp_path: Path, operators_run: list[int]) -> None:
    least = tflq.quantize(FLOAT, rows(), RECIPE).report.comparison.sqnr
    recipe = replace(RECIPE, budget=RecipeBudget(least_sqnr=least + 3))
    anew = tflq.quantize(FLOAT, rows(), recipe)
    runs = []
    for phase in ("sensitivity", "sparing 0", "sparing 1"):
        journal = tmp_path / "run.journal"

        def interrupt(what: str, done: int, total: int, phase: str = phase) -> None:
            if what.startswith(phase):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            tflq.quantize(FLOAT, rows(), recipe, interrupt, resume=journal)
        before = operators_run[0]
        resumed = tflq.quantize(FLOAT, rows(), recipe, resume=journal)
        assert facts(resumed) == facts(anew)
        assert (resumed.report.sensitivities, resumed.report.trials) == (anew.report.sensitivities, anew.report.trials)
        assert not journal.exists()
        runs.append(operators_run[0] - before)
    assert runs[0] > runs[1] > runs[2]


def test_later_stops_leave_less_to_do(tmp_path: Path, operators_run: list[int]) -> None:
    runs = []
    for entries in (1, 4, 8):
        stopped(tmp_path / "run.journal", entries)
        before = operators_run[0]
        tflq.quantize(FLOAT, rows(), RECIPE, resume=tmp_path / "run.journal")
        runs.append(operators_run[0] - before)
    assert runs[0] > runs[1] > runs[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_several_processes_go_on_from_a_journal_too(tmp_path: Path) -> None:
    stopped(tmp_path / "run.journal", 5)
    resumed = tflq.quantize(FLOAT, rows(), RECIPE, resume=tmp_path / "run.journal", jobs=2)
    assert facts(resumed) == facts(tflq.quantize(FLOAT, rows(), RECIPE))


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 30, -20])  # of the bytes: an empty file, a part of the first line, of the last
def test_a_line_that_was_torn_off_is_done_again(kept: int, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    stopped(journal, 5)
    journal.write_bytes(journal.read_bytes()[:kept])
    resumed = tflq.quantize(FLOAT, rows(), RECIPE, resume=journal)
    assert facts(resumed) == facts(tflq.quantize(FLOAT, rows(), RECIPE))


def test_what_another_run_noted_is_refused_and_left_alone(tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    stopped(journal, 2)
    data = journal.read_bytes()
    float2 = replace(FLOAT, description="another")
    others = [
        (FLOAT, rows(63), RECIPE, "another calibration data:"),
        (FLOAT, rows()[::-1], RECIPE, "another calibration data:"),
        (FLOAT, rows(), replace(RECIPE, turns=3), "another recipe:"),
        (float2, rows(), RECIPE, "another model:"),
        (float2, rows(63), RECIPE, "another model and another calibration data:"),
    ]
    for model, samples, recipe, text in others:
        with pytest.raises(InputError, match=text):
            tflq.quantize(model, samples, recipe, resume=journal)
        assert journal.read_bytes() == data


@pytest.mark.parametrize("data", [b"mine\n", b"mine", b'{"schema": "tflq/recipe/1"}\n', b"[1]\n"])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(data: bytes, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    journal.write_bytes(data)
    with pytest.raises(InputError, match="expected a journal"):
        tflq.quantize(FLOAT, rows(8), RECIPE, resume=journal)
    assert journal.read_bytes() == data


def test_an_error_that_would_be_met_again_leaves_no_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tflq.quantization.judge import contest

    def build(task: Any) -> Any:
        raise CalibrationError("never fits", sample=0)

    monkeypatch.setattr(contest, "build", build)
    with pytest.raises(CalibrationError):
        tflq.quantize(FLOAT, rows(), RECIPE, resume=tmp_path / "run.journal")
    assert not (tmp_path / "run.journal").exists()


def test_the_best_until_an_interrupt_may_come_from_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    stopped(journal, 8)

    def interrupt(what: str, done: int, total: int) -> None:
        if what.startswith("configuration"):
            raise KeyboardInterrupt

    best = tflq.quantize(FLOAT, rows(), RECIPE, interrupt, resume=journal, keep_best=True)
    assert best.report.interrupted
    assert best.report.ranking[0].methods in RECIPE.candidates
    assert journal.exists()
    resumed = tflq.quantize(FLOAT, rows(), RECIPE, resume=journal)
    assert facts(resumed) == facts(tflq.quantize(FLOAT, rows(), RECIPE))


def test_numbers_are_read_as_they_were_written() -> None:
    random = np.random.default_rng(1)
    numbers = random.normal(0, 1, 50) * 10.0 ** random.integers(-300, 300, 50)
    for divergences in (None, numbers):
        score = Score(divergences, float(numbers[0]), 1 / 3, 7, 50, numbers[::-1].copy(), 4)
        again = rank_from(Methods(0.5), json.loads(json.dumps(entry_of(Ranked(Methods(0.5), score))))).score
        assert again is not None
        assert (again.signal, again.noise, again.same, again.samples, again.differing) == (numbers[0], 1 / 3, 7, 50, 4)
        np.testing.assert_array_equal(again.noises, score.noises)
        assert (again.divergences is None) == (divergences is None)
        assert again.divergences is None or again.divergences.tobytes() == numbers.tobytes()
    failed = Ranked(Methods(), None, "no kernel")
    assert rank_from(Methods(), json.loads(json.dumps(entry_of(failed)))) == failed or failed.error == "no kernel"


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", x=suites.digits().images[:64])
    out, anew, journal = (tmp_path / name for name in ("int8.tflite", "anew.tflite", "int8.tflite.journal"))
    words = [
        sys.executable,
        "-m",
        "tflq",
        "quantize",
        str(GOLDEN / "digits_mobilenet_float.tflite"),
        "--calibration",
        str(tmp_path / "rows.npz"),
    ]
    words += ["--resume", "--recipe", "balanced", "--jobs", "1"]
    running = subprocess.Popen([*words, "-o", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while running.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > 3):
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not out.exists()
    done = journal.read_bytes().count(b"\n")
    refused = subprocess.run([*words, "--mode", "int16x8", "-o", str(out)], capture_output=True, text=True)
    assert refused.returncode == 2, refused.stderr
    assert "another recipe" in refused.stderr
    for target in (out, anew):
        ended = subprocess.run([*words, "-o", str(target)], capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
    assert done > 3
    assert out.read_bytes() == anew.read_bytes()
    assert not journal.exists()


@pytest.mark.parametrize(
    "entry",
    [
        {"key": "a", "value": {"signal": 2}},  # without its mark
        {"key": ["a"], "value": 1, "mark": "0" * 16},
        {"key": "a", "value": {"signal": "x", "divergences": 7}, "mark": 7},
        [],
    ],
)
def test_a_journal_whose_entries_were_changed_is_refused(entry: object, tmp_path: Path) -> None:
    path, run = tmp_path / "o.journal", {"model": "m", "recipe": "r", "samples": "s", "tflq": "0"}
    with Journal(path, run) as journal:
        journal.note("a", {"signal": 1.0})
        journal.kept = True
    assert Journal(path, run).get("a") == {"signal": 1.0}
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")
    with pytest.raises(InputError, match="line 3 was changed"):
        Journal(path, run)
