"""Which candidate is taken, and on which samples it is judged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tflq
from support.float_graphs import random_graph, samples
from tflq.errors import TflqError
from tflq.face.report.verbs.quantize_texts import left_text
from tflq.quantization.judge.journal import Left, Ranked, Score, is_far_behind, join, ranked
from tflq.quantization.quarters import FEW, parted
from tflq.quantization.recipe import Methods, Mode, Ranging, Recipe, Refining, Rounding, Search, Watch, distinct


def candidate(name: float, divergences: Any, decibels: float = 30.0) -> Ranked:
    """A candidate that `equalize` names."""
    known = None if divergences is None else np.array(divergences, np.float64)
    return Ranked(Methods(name), Score(known, 1.0, 10 ** (-decibels / 10), 3, 4))


def order(*given: Ranked) -> list[float | None]:
    return [c.methods.equalize for c in ranked(given)]


CLEAR = np.array([0.5, 0.6, 0.5, 0.6])


def test_the_least_divergence_goes_first_where_samples_can_tell() -> None:
    worse, best, worst = candidate(0.1, CLEAR * 2, 40), candidate(0.2, CLEAR, 20), candidate(0.3, CLEAR * 3, 60)
    assert order(worse, best, worst) == [0.2, 0.1, 0.3]


def test_those_that_samples_cannot_tell_apart_go_by_decibels() -> None:
    noisy = candidate(0.1, [0.1, 1.4, 0.2, 0.9], 35)  # behind on average, by less than its standard error
    assert order(candidate(0.2, CLEAR, 20), noisy, candidate(0.3, CLEAR * 1.001, 30)) == [0.1, 0.3, 0.2]


def test_outputs_that_are_no_distribution_go_by_decibels() -> None:
    assert order(candidate(0.1, None, 10), candidate(0.2, None, 40), candidate(0.3, None, 25)) == [0.2, 0.3, 0.1]


def test_failures_are_last() -> None:
    failed = Ranked(Methods(0.9), None, "no kernel")
    assert order(failed, candidate(0.1, CLEAR), failed)[0] == 0.1
    assert order(failed, candidate(0.1, None, -20.0))[-1] == 0.9
    assert math.isnan(failed.divergence)
    assert failed.sqnr == -math.inf


def test_scores_of_parts_are_those_of_the_whole() -> None:
    whole = join([Score(np.array([1.0, 2.0]), 3.0, 1.0, 1, 2), Score(np.array([4.0]), 5.0, 2.0, 1, 1)])
    assert whole.divergences is not None
    assert whole.divergences.tolist() == [1, 2, 4]
    assert (whole.signal, whole.noise, whole.same, whole.samples) == (8, 3, 2, 3)


def test_parts_and_bounds_of_a_score() -> None:
    parts = (("scores", np.array([0.01, 0.02])), ("boxes", np.array([0.0, 0.01])))
    score = Score(None, 2.0, 0.04, 0, 2, np.array([0.01, 0.03]), 0, parts)
    decibels = [pytest.approx(-10 * math.log10(mean)) for mean in (0.015, 0.005)]
    assert list(score.ratios.items()) == list(zip(("scores", "boxes"), decibels, strict=True))
    assert score.promise is None  # of two samples
    noises = np.array([0.001] * 28 + [0.1])
    assert Score(None, 29.0, 0.128, 0, 29, noises).promise == (0.9, pytest.approx(10.0))  # 0.9^29 is below 5 %
    assert Score(None, 28.0, 0.028, 0, 28, noises[:28]).promise == (0.8, pytest.approx(30.0))
    both = join([score, score])
    assert [name for name, _ in both.groups] == ["scores", "boxes"]
    assert both.groups[1][1].tolist() == [0, 0.01, 0, 0.01]


@pytest.mark.parametrize("count", [FEW, 30])
def test_every_sample_judges_in_one_turn_and_is_fitted_to_in_the_others(count: int) -> None:
    given = [{0: np.array([k])} for k in range(count)]
    judging: list[int] = []
    for turn in range(4):
        fit, judge = ([int(s[0][0]) for s in part] for part in parted(given, turn))
        assert sorted(fit + judge) == list(range(count))
        judging += judge
    assert sorted(judging) == list(range(count))


def test_few_samples_are_fitted_to_and_judge() -> None:
    given = [{0: np.array([k])} for k in range(FEW - 1)]
    assert [list(part) for part in parted(given)] == [given, given]


def test_modes_with_float_activations_try_no_ranges_of_them() -> None:
    searching = Methods(ranging=Ranging(Watch.RELATIVE, activations=Search(), weights=Search()))
    rounding = Methods(refining=Refining(Rounding.GPTQ))
    recipe = Recipe(candidates=(Methods(), Methods(ranging=Ranging(Watch.MOVING_AVERAGE)), searching, rounding))
    assert distinct(recipe) == recipe.candidates
    assert distinct(replace(recipe, mode=Mode.DYNAMIC)) == (
        Methods(),
        Methods(ranging=Ranging(weights=Search())),
        rounding,
    )


def test_a_candidate_that_cannot_be_carried_out_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from tflq.quantization.judge import contest

    real = contest.build

    def build(task: Any) -> Any:
        if task.methods.equalize is None:
            raise TflqError("not this one")
        return real(task)

    monkeypatch.setattr(contest, "build", build)
    model = random_graph(3)
    given = samples(model, 3)
    report = tflq.quantize(model, given, Recipe(candidates=(Methods(), Methods(0.5), Methods(0.25)))).report
    assert [c.methods.equalize for c in report.ranking][-1] is None
    assert report.ranking[-1].error == "not this one"
    with pytest.raises(TflqError, match="not this one"):
        tflq.quantize(model, given, Recipe(candidates=(Methods(), Methods(ranging=Ranging(Watch.PERCENTILE)))))


def losing(factor: float, spread: float = 0.05) -> Score:
    """Eight samples that lose about `factor` each, some more, some less."""
    losses = factor * (1 + spread * np.array([1, -1, 2, -2, 1, -1, 0.5, -0.5]))
    return Score(losses, 1.0, 0.1, 3, 8, losses)


def test_only_who_is_surely_behind_leaves() -> None:
    assert is_far_behind(losing(0.3), losing(0.1), 1.1)
    assert not is_far_behind(losing(0.3), losing(0.1), 4.0)
    assert not is_far_behind(losing(0.12, spread=0.5), losing(0.1), 1.1)  # ahead as often as behind
    assert not is_far_behind(losing(0.1), losing(0.1), 1.1)
    assert not is_far_behind(losing(5e-5), losing(1e-6), 1.1)  # nothing that anybody would notice


def test_who_left_is_behind_who_stayed_and_says_why() -> None:
    given = [
        Ranked(Methods(0.3), losing(0.01), left=Left(50.0, 1)),
        candidate(0.2, CLEAR),
        Ranked(Methods(0.9), None, "no"),
    ]
    assert order(*given) == [0.2, 0.3, 0.9]


def test_hopeless_ranges_leave_in_the_heat_with_all_that_refines_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from tflq.quantization.judge import contest

    ruined, calls = Ranging(Watch.PERCENTILE), []

    def judged(task: Any, built: Any, judging: Any, which: slice = slice(None)) -> Score:
        calls.append(len(judging[which]))
        return losing(0.1 if len(calls) != 2 else 5)

    monkeypatch.setattr(contest, "judged", judged)
    model = random_graph(3)
    fine, bare = Methods(), Methods(ranging=ruined)
    refined = replace(bare, refining=Refining(Rounding.GPTQ))
    report = tflq.quantize(model, samples(model, 3, 64), Recipe(candidates=(fine, refined, bare))).report
    assert calls == [8, 8, 8, 16]  # both in the heat, who stayed on the rest, and the proof
    assert [c.methods for c in report.ranking] == [fine, refined, bare]
    assert report.ranking[1].score is None
    dropped = [left_text(candidate.left) for candidate in report.ranking[1:3]]
    assert dropped[0] == "its ranges alone lost 50.0 times as much as the best in the heat of 8 samples"
    assert dropped[1] == "lost 50.0 times as much as the best in the heat of 8 samples"


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_interrupt_leaves_the_best_so_far(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from tflq.quantization.judge import contest

    real, count = contest.build, [0]

    def build(task: Any) -> Any:
        count[0] += 1
        if count[0] > after:
            raise KeyboardInterrupt
        return real(task)

    monkeypatch.setattr(contest, "build", build)
    model = random_graph(3)
    recipe = Recipe(candidates=tuple(Methods(k / 4) for k in range(5)))
    if after == 0:
        with pytest.raises(KeyboardInterrupt):
            tflq.quantize(model, samples(model, 3, 12), recipe, keep_best=True)
        return
    report = tflq.quantize(model, samples(model, 3, 12), recipe, keep_best=True).report
    assert report.interrupted
    (leading,) = report.ranking
    assert leading.methods in recipe.candidates[:after]
    assert report.held_back == 3
    count[0] = 0
    with pytest.raises(KeyboardInterrupt):
        tflq.quantize(model, samples(model, 3, 12), recipe)
