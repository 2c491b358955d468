"""Sensitivity finds the operator that hurts, and a budget spares as much as its bounds ask, and no more."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.errors import OptionError, UnknownNameError
from tflq.model.ir import TensorType, view
from tflq.quantization.build.build import Task
from tflq.quantization.frontier import Sample
from tflq.quantization.judge.trials import Attempt, Sensitivity, Trial, by_price, front, sensitivities, within_budget
from tflq.quantization.recipe import Methods, Mode, Recipe, RecipeBudget, Refining, Rounding, Spared
from tflq.quantization.recipe_files import finish, read_budget
from tflq.quantization.scheme.float_graph import prepare, with_constants

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"
PLAIN = prepare(tflq.load(GOLDEN / "digits_mobilenet_float.tflite"))


FOUR_BITS = Methods(refining=Refining(Rounding.GPTQ))


def digits(first: int, last: int) -> list[Sample]:
    images = suites.digits().images[first:last]
    return [{PLAIN.graph.inputs[0]: image[None]} for image in images]


@pytest.fixture(scope="module")
def order() -> tuple[Sensitivity, ...]:
    return sensitivities(PLAIN.model, Task(PLAIN, digits(0, 16), Recipe(), Methods()), digits(16, 32))


def spared(order: tuple[Sensitivity, ...], budget: RecipeBudget) -> Attempt:
    task = Task(PLAIN, digits(0, 16), Recipe(budget=budget), Methods())
    return within_budget(PLAIN.model, task, digits(16, 32), order)


def test_the_operator_whose_weights_do_not_fit_comes_first() -> None:
    index = next(i for i in range(3, len(PLAIN.graph.ops)) if PLAIN.graph.op(i).name == "CONV_2D")
    weights = PLAIN.graph.op(index).inputs[1]
    values = PLAIN.constants[weights].copy()
    values[:, 0, 0, 0] = 200 * np.abs(values).max()  # one weight a row takes all codes
    (given,) = (PLAIN.graph.op(index).inputs[0],)
    assert given  # its input channel stays as it is: the operator alone has coarse weights
    hurt = with_constants(PLAIN, {weights: values})
    found = sensitivities(hurt.model, Task(hurt, digits(0, 16), Recipe(), Methods()), digits(16, 32))
    assert found[0].operator == index
    assert [s.sqnr for s in found] == sorted(s.sqnr for s in found)


def test_accuracy_is_reached_with_few_operators(order: tuple[Sensitivity, ...]) -> None:
    none = spared(order, RecipeBudget(least_sqnr=-100.0))
    assert none.spared == ()
    wanted = none.sqnr + 3
    found = spared(order, RecipeBudget(least_sqnr=wanted))
    assert found.sqnr >= wanted
    assert 0 < len(found.spared) < len(order)
    assert found.share < 1


@pytest.mark.parametrize("instead", list(Spared))
def test_cost_is_used_but_not_exceeded(order: tuple[Sensitivity, ...], instead: Spared) -> None:
    found = spared(order, RecipeBudget(most_share=0.2, spared=instead))
    assert 0 < found.share <= 0.2
    types = {t.type for t in view(found.built.integer.model).tensors}
    added = {Spared.INT16X8: TensorType.INT16, Spared.INT8: TensorType.INT8, Spared.FLOAT: TensorType.FLOAT32}
    assert {TensorType.INT8, added[instead]} <= types


def test_a_bound_on_bytes_holds(order: tuple[Sensitivity, ...]) -> None:
    least = spared(order, RecipeBudget(most_share=0.0, spared=Spared.FLOAT)).size
    budget = RecipeBudget(most_bytes=least + 4000, spared=Spared.FLOAT)
    found = spared(order, budget)
    assert found.size <= least + 4000
    assert len(tflq.save(finish(found.built.integer.model, Recipe(budget=budget)))) <= least + 4000


def test_a_bound_on_bytes_takes_noise_for_its_price() -> None:
    weighted = [op for op in PLAIN.graph.ops if len(op.inputs) > 2 and op.inputs[1] in PLAIN.constants]
    sizes = {op.index: PLAIN.constants[op.inputs[1]].size for op in weighted}
    small, large = min(sizes, key=lambda k: sizes[k]), max(sizes, key=lambda k: sizes[k])
    noises = {large: 0.01, small: 0.008}
    assert sizes[large] > 2 * sizes[small]
    assert by_price(PLAIN, noises, RecipeBudget(least_sqnr=30.0)) == (large, small)
    assert by_price(PLAIN, noises, RecipeBudget(most_bytes=1)) == (small, large)
    assert by_price(PLAIN, noises, RecipeBudget(least_sqnr=30.0), are_weights=True) == (small, large)


def test_the_front_has_no_trial_that_another_beats() -> None:
    points = [(100, 20.0), (120, 19.0), (130, 25.0), (130, 24.0)]
    trials = [Trial(number, size, sqnr, None) for number, (size, sqnr) in enumerate(points)]
    assert [trial.spared for trial in front(trials)] == [0, 2]
    assert front([]) == ()


def test_a_budget_of_four_bits_needs_no_sensitivities() -> None:
    recipe = Recipe(mode=Mode.INT8X4, budget=RecipeBudget(least_sqnr=-100.0))
    four = within_budget(PLAIN.model, Task(PLAIN, digits(0, 16), recipe, FOUR_BITS), digits(16, 32), ())
    better = replace(recipe, budget=RecipeBudget(least_sqnr=four.sqnr + 2))
    found = within_budget(PLAIN.model, Task(PLAIN, digits(0, 16), better, FOUR_BITS), digits(16, 32), ())
    assert 0 < len(found.spared) < len(PLAIN.graph.ops)
    assert found.sqnr >= four.sqnr + 2
    impossible = replace(recipe, budget=RecipeBudget(least_sqnr=500.0))
    with pytest.raises(OptionError, match="budget"):
        within_budget(PLAIN.model, Task(PLAIN, digits(0, 16), impossible, FOUR_BITS), digits(16, 32), ())


def test_what_cannot_be_kept_is_refused(order: tuple[Sensitivity, ...]) -> None:
    with pytest.raises(OptionError, match="budget"):
        spared(order, RecipeBudget(least_sqnr=500.0))


def test_budgets_in_words() -> None:
    assert read_budget("sqnr>=35, share<=0.1, spared=float") == RecipeBudget(35.0, None, None, 0.1, Spared.FLOAT)
    assert read_budget("bytes<=2000") == RecipeBudget(most_bytes=2000)
    with pytest.raises(UnknownNameError):
        read_budget("watts<=3")
    with pytest.raises(OptionError):
        read_budget("sqnr>=much")
    assert replace(read_budget("agreement>=0.5"), least_agreement=None) == RecipeBudget()
