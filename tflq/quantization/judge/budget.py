"""The operators that a budget spares from the recipe's mode: the costliest first, as its bounds require."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from tflq.comparison.inspection.operators import macs_of
from tflq.errors import OptionError
from tflq.model.flatbuf.writer import file_size
from tflq.model.ir import Model, view
from tflq.quantization.build.build import Built, build
from tflq.quantization.build.task import Task
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.judge.journal import Journal, entry_key
from tflq.quantization.judge.sensitivity import Sensitivity
from tflq.quantization.recipe.recipe import Budget, Mode, Recipe, Spared
from tflq.quantization.recipe.stamp import finish
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
    """A model with some operators spared (indices of the float model), its cost and its quality."""

    built: Built
    spared: tuple[int, ...]
    sqnr: float  # of the outputs, dB
    size: int  # bytes of the file
    share: float  # of the multiply-accumulates, in spared operators
    trials: tuple[Trial, ...] = ()  # all trials until this one was taken, by their number of spared operators


def is_by_errors(recipe: Recipe) -> bool:
    """Return whether errors of weights of four bits decide which operators a budget spares, not sensitivities.

    They come with refinement, and choose as well or better (docs/quantize.md).
    """
    return recipe.mode is Mode.INT8X4 and recipe.spared is Spared.INT8


def within_budget(
    source: Model, task: Task, judging: Iterable[Sample], costs: Sequence[Sensitivity], journal: Journal | None = None
) -> Attempt:
    """Return the model that satisfies the recipe's budget; `costs` are the sensitivities, if these decide.

    Operators are spared in the order of `by_price`. Models are compared with `source` on the samples `judging`. The
    numbers of spared operators are tried as 0, 1, 2, 4, 8 ..., then by bisection between the last failing and the first
    passing one. Trials in the `journal` are not repeated.

    Raises:
        OptionError: No number of spared operators keeps all bounds.
    """
    budget = task.recipe.budget
    assert budget is not None  # the caller has one
    noises = {cost.operator: 10 ** (-cost.sqnr / 10) for cost in costs}
    if is_by_errors(task.recipe):
        noises = dict(build(task).refinements.errors)
    order = by_price(task.floats, noises, budget, are_weights=is_by_errors(task.recipe))
    tries = _Tries(source, task, judging, order, journal or Journal(None, {}))

    def affordable(count: int) -> bool:
        trial, share = tries.trial(count), tries.share(count)
        small = budget.most_bytes is None or trial.size <= budget.most_bytes
        return small and (budget.most_share is None or share <= budget.most_share)

    def accurate(count: int) -> bool:
        trial, least = tries.trial(count), budget.least_agreement
        agrees = least is None or (trial.agreement is not None and trial.agreement >= least)
        return agrees and (budget.least_sqnr is None or trial.sqnr >= budget.least_sqnr)

    if budget.wants_accuracy:
        count = _turn(len(order), accurate)
    else:
        most = max(0, _turn(len(order), lambda n: not affordable(n)) - 1)
        tries.trial(min(most, len(order)))
        count = max(
            (t for t in tries.made if affordable(t.spared)), key=lambda t: (t.sqnr, t.spared), default=tries.made[0]
        ).spared
    count = min(max(count, 0), len(order))
    last, share = tries.trial(count), tries.share(count)
    if not (affordable(count) and accurate(count)):
        spared = task.recipe.spared
        other = "" if spared is Spared.FLOAT else "; spared=float in the budget spares them in float instead"
        raise OptionError(
            f"the budget cannot be kept: {count} operators in {spared.value} give "
            f"{last.sqnr:.1f} dB, {last.size} bytes, {share:.1%} of the multiply-accumulates in them{other}"
        )
    return Attempt(tries.built(count), tries.spared(count), last.sqnr, last.size, share, tries.made)


def by_price(
    floats: FloatModel, noises: Mapping[int, float], budget: Budget, *, are_weights: bool = False
) -> tuple[int, ...]:
    """Return operators in the order in which a budget spares them, from the noise that each adds.

    Without a bound on cost, the noisiest come first. Otherwise it is those that win back the most noise for their
    price: their shares of all weights and of all multiply-accumulates, as far as these are bounded; with `are_weights`,
    that of the weights in any case. For a knapsack of many small things, that is within one thing of the optimum
    (Dantzig 1957, "Discrete-variable extremum problems").
    """
    weights, macs = _weights(floats), _shares(floats)
    counts_bytes = budget.most_bytes is not None or (are_weights and budget.most_share is None)

    def price(operator: int) -> float:
        bytes_ = weights[operator] / max(1, sum(weights)) if counts_bytes else 0.0
        return bytes_ + (macs[operator] if budget.most_share is not None else 0.0)

    if not counts_bytes and budget.most_share is None:
        return tuple(sorted(noises, key=lambda o: -noises[o]))
    return tuple(sorted(noises, key=lambda o: -noises[o] / max(price(o), 1e-6)))


def front(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Return the trials than which none is as small and better, or as good and smaller; the smallest first."""
    best: list[Trial] = []
    for trial in sorted(trials, key=lambda t: (t.size, -t.sqnr)):
        if not best or trial.sqnr > best[-1].sqnr:
            best.append(trial)
    return tuple(best)


def _weights(floats: FloatModel) -> list[int]:
    """Return the number of constant float elements that each operator reads."""
    return [sum(floats.constants[t].size for t in op.inputs if t in floats.constants) for op in floats.graph.ops]


class _Tries:
    """Models by the number of sensitive operators that they spare, and their results."""

    def __init__(
        self, source: Model, task: Task, judging: Iterable[Sample], order: Sequence[int], journal: Journal
    ) -> None:
        self._source, self._task, self._judging, self._order = source, task, judging, order
        self._journal, self._shares = journal, _shares(task.floats)
        self._built: dict[int, Built] = {}
        self._trials: dict[int, Trial] = {}

    @property
    def made(self) -> tuple[Trial, ...]:
        """All trials, by their number of spared operators."""
        return tuple(self._trials[count] for count in sorted(self._trials))

    def spared(self, count: int) -> tuple[int, ...]:
        """Return the operators that are spared."""
        return tuple(self._order[:count])

    def share(self, count: int) -> float:
        """Return the share of the multiply-accumulates in the spared operators."""
        return sum(self._shares[i] for i in self.spared(count))

    def built(self, count: int) -> Built:
        """Return the model that spares this many operators."""
        if count not in self._built:
            task, spared = self._task, self.spared(count)
            task.tell(f"sparing {count} operators", len(self._built), 0)
            floating = dict.fromkeys(spared, "spared by the budget") if task.recipe.spared is Spared.FLOAT else {}
            wide = frozenset(() if task.recipe.spared is Spared.FLOAT else spared)
            self._built[count] = build(replace(task, kept_float={**task.kept_float, **floating}, wide=wide))
        return self._built[count]

    def trial(self, count: int) -> Trial:
        """Return the result of a trial, computed or read from the journal."""
        if count not in self._trials:
            key = entry_key(f"sparing {count}", self._task.methods)
            entry = self._journal.get(key)
            if entry is None:
                model = self.built(count).integer.model
                size = file_size(finish(model, self._task.recipe))
                comparison = compare_models(self._source, model, self._judging)
                agreement = None if comparison.agreement is None else comparison.agreement.rate
                entry = asdict(Trial(count, size, comparison.leading, agreement))
                self._journal.note(key, entry)
            self._trials[count] = Trial(**entry)
        return self._trials[count]


def _turn(most: int, holds: Callable[[int], bool]) -> int:
    """Return the least count from which a property holds (assumed monotonic); most + 1 if it never does."""
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
    """Return each operator's share of the model's multiply-accumulates."""
    counts = [macs_of(op) for op in view(floats.model).ops]
    return [count / max(1, sum(counts)) for count in counts]
