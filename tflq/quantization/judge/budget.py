"""Which operators a budget spares the recipe's mode: the most sensitive first, as few or as many as its bounds ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tflq.api.files import save
from tflq.errors import OptionError
from tflq.inspection.operators import macs_of
from tflq.ir import Model
from tflq.quantization.build.build import Built, build
from tflq.quantization.build.task import Task
from tflq.quantization.judge.comparison import Comparison, compare_models
from tflq.quantization.judge.sensitivity import Sensitivity
from tflq.quantization.recipe.recipe import Budget, Spared
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.float_graph import FloatModel


@dataclass(frozen=True, slots=True)
class Trial:
    """One number of spared operators: bytes of the file, dB of the outputs, the share of equal top-1 or None."""

    spared: int
    size: int
    sqnr: float
    agreement: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """A model with some operators spared (indices of the float model), and what it costs and gives."""

    built: Built
    spared: tuple[int, ...]
    comparison: Comparison
    size: int  # bytes of the file
    share: float  # of the multiply-accumulates, in spared operators
    trials: tuple[Trial, ...] = ()  # all that were made until this one was taken, by their number of spared operators

    def affordable(self, budget: Budget) -> bool:
        """Whether it keeps the bounds on cost."""
        small = budget.most_bytes is None or self.size <= budget.most_bytes
        return small and (budget.most_share is None or self.share <= budget.most_share)

    def accurate(self, budget: Budget) -> bool:
        """Whether it keeps the bounds on accuracy."""
        agreement = self.comparison.agreement
        agrees = budget.least_agreement is None or (agreement is not None and agreement.rate >= budget.least_agreement)
        return agrees and (budget.least_sqnr is None or self.comparison.sqnr >= budget.least_sqnr)


def within_budget(source: Model, task: Task, judging: Iterable[Sample], order: Sequence[Sensitivity]) -> Attempt:
    """Return the model that the recipe's budget asks for; `order` has the most sensitive operators first.

    Attempts are compared with `source` on the samples `judging`. Numbers of spared operators are tried as 0, 1, 2, 4,
    8 ..., then halved between the last two of which one keeps the bounds and the other does not.

    Raises:
        OptionError: No number of spared operators keeps all bounds.
    """
    budget = task.recipe.budget
    assert budget is not None  # the caller has one
    shares = _shares(task.floats)
    tried: dict[int, Attempt] = {}

    def attempt(count: int) -> Attempt:
        if count not in tried:
            task.tell(f"sparing {count} operators", len(tried), 0)
            spared = tuple(s.operator for s in order[:count])
            floating = dict.fromkeys(spared, "spared by the budget") if task.recipe.spared is Spared.FLOAT else {}
            wide = frozenset(() if task.recipe.spared is Spared.FLOAT else spared)
            built = build(replace(task, kept_float={**task.kept_float, **floating}, wide=wide))
            model = built.integer.model
            share = sum(shares[i] for i in spared)
            tried[count] = Attempt(built, spared, compare_models(source, model, judging), len(save(model)), share)
        return tried[count]

    if budget.wants_accuracy:
        count = _turn(len(order), lambda n: attempt(n).accurate(budget))
    else:
        count = _turn(len(order), lambda n: not attempt(n).affordable(budget)) - 1
    last = attempt(min(max(count, 0), len(order)))
    if not (last.affordable(budget) and last.accurate(budget)):
        raise OptionError(
            f"the budget cannot be kept: {len(last.spared)} operators in {task.recipe.spared.value} give "
            f"{last.comparison.sqnr:.1f} dB, {last.size} bytes, {last.share:.1%} of the multiply-accumulates in them"
        )
    return replace(last, trials=tuple(_trial(tried[count]) for count in sorted(tried)))


def _trial(attempt: Attempt) -> Trial:
    agreement = attempt.comparison.agreement
    rate = None if agreement is None else agreement.rate
    return Trial(len(attempt.spared), attempt.size, attempt.comparison.sqnr, rate)


def _turn(most: int, holds: Callable[[int], bool]) -> int:
    """The least count from which a property holds, taken to hold from there on; most + 1 where it never does."""
    low, high = -1, 0
    while high <= most and not holds(high):
        low, high = high, max(1, high * 2)
    if high > most and (low == most or not holds(most)):
        return most + 1
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _shares(floats: FloatModel) -> list[float]:
    """Each operator's share of the model's multiply-accumulates."""
    graph = floats.graph
    counts = [macs_of(floats.op(i), graph.tensors, operator) for i, operator in enumerate(graph.operators)]
    return [count / max(1, sum(counts)) for count in counts]
