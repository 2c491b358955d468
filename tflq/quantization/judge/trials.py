"""Trials of changed settings: eight bits, norms, budgets, float operators that win losses back.

Weights of eight bits in mode int8x4, for the operators that lose most by four.

Depthwise and first convolutions have few weights, and lose much by rounding them to four bits. An operator's loss is
the squared error of its results relative to their squares, which refinement computes on the way. Measuring the outputs
with one operator at a time in eight bits is slower, and its gains drown in the noise of all the others.

Without a share in the recipe, the first of SHARES counts, or the next one if distributions are not yet close ENOUGH
and eight bits everywhere would halve their distance.

Normalizations with activations of 16 bits, or in float, if that wins back what 8 bits lose.

The variances of a layer norm's rows differ by orders of magnitude, and so do their reciprocal roots. With one scale of
8 bits, rows of little variance keep one or two digits. The operators around them, up to those with weights, hold few
multiply-accumulates. One configuration is built with and without 16 bits there, and judged on held-back samples.

The cost of each operator alone: the outputs' noise if only it is integer and all others compute in float.

The gain from one operator in float, measured on models that are built for it.

The operators that a budget spares from the recipe's mode: the costliest first, as its bounds require.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from tflq.comparison.inspection.operators import macs_of
from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import CalibrationError, OptionError, TflqError
from tflq.model.flatbuf.writer import file_size
from tflq.model.ir import Model, OperatorView, TensorType, view
from tflq.quantization.build.build import Built, Task, build
from tflq.quantization.frontier import Sample
from tflq.quantization.judge.comparison import Fidelities, compare_models
from tflq.quantization.judge.contest import judged
from tflq.quantization.judge.journal import Journal, entry_key, is_far_behind
from tflq.quantization.portable.editing import Editing, Rewrite, Rewritten, compose, replaced, rewrite_of
from tflq.quantization.quarters import parted
from tflq.quantization.recipe import Mode, Norms, Recipe, RecipeBudget, Refining, Spared
from tflq.quantization.recipe_files import finish
from tflq.quantization.scheme.float_graph import FloatModel, prepare
from tflq.quantization.scheme.scheme import modes_of

T = TypeVar("T")

#: Shares of the bytes that four bits save, and the mean divergence on held-back samples, in nats, that is good enough.
SHARES, ENOUGH = (0.2, 0.5), 0.01


@dataclass(frozen=True, slots=True)
class Eights:
    """Operators of the float model whose weights keep eight bits, of `candidates` that could have four.

    `before` and `after` are the signal-to-noise ratios of the outputs on held-out samples with four bits alone and with
    these operators in eight, dB; `added` are the bytes that the file has more.
    """

    operators: tuple[int, ...]
    candidates: int
    before: float
    after: float
    added: int

    def numbered(self, origins: Sequence[int]) -> Eights:
        """Return the same with operators numbered as in the source of the float model."""
        return replace(self, operators=tuple(sorted(origins[operator] for operator in self.operators)))


def find_eights(task: Task, journal: Journal) -> Eights | None:
    """Choose operators, and judge one configuration with and without them; None if that is significantly worse.

    Applies to mode int8x4 without a budget, which chooses operators itself.
    """
    recipe, (fitting, judging) = task.recipe, parted(task.samples)
    if recipe.mode is not Mode.INT8X4 or recipe.budget is not None or recipe.eight_bits == 0:
        return None
    task = _first_equalized(task, fitting)
    # If no model can be built, the contest raises the error, unless another candidate can be built.
    make = partial(if_built, partial(_try, task, judging))
    return journal.once(entry_key("eight bits", task.methods), Eights, make)


def _first_equalized(task: Task, samples: Sequence[Sample]) -> Task:
    """Return the task of one configuration: the first that equalizes, else the first."""
    candidates = task.recipe.candidates
    methods = next((m for m in candidates if m.equalize is not None), candidates[0])
    return replace(task, samples=samples, methods=methods, progress=None)


def if_built(make: Callable[[], T | None]) -> T | None:
    """Return a result; None if a model for it cannot be built.

    Raises:
        CalibrationError: A sample does not fit the model.
    """
    try:
        return make()
    except CalibrationError:
        raise
    except TflqError:
        return None


def size_of(built: Built, task: Task) -> int:
    """Return the bytes of a model's file."""
    return file_size(finish(built.integer.model, task.recipe))


def _try(task: Task, judging: Sequence[Sample]) -> Eights | None:
    four, share = build(task), task.recipe.eight_bits
    errors, shares = four.refinements.errors, SHARES if share is None else (share,)
    before = best = judged(task, four, judging)
    found: Eights | None = None
    for part in shares:
        chosen = costliest(task.floats, errors, part)
        if not chosen:
            continue
        mixed = build(replace(task, wide=chosen))
        after = judged(task, mixed, judging)
        if is_far_behind(after, best, 1.0):
            break
        added = size_of(mixed, task) - size_of(four, task)
        found, best = Eights(tuple(sorted(chosen)), len(errors), before.sqnr, after.sqnr, added), after
        if part == shares[-1] or after.divergences is None or float(after.divergences.mean()) <= ENOUGH:
            break
        eight = judged(task, build(replace(task, wide=frozenset(errors))), judging)
        if 2 * float(eight.losses.mean()) > float(after.losses.mean()):  # four bits are not to blame
            break
    return found


def costliest(floats: FloatModel, errors: Mapping[int, float], share: float) -> frozenset[int]:
    """Return the operators with the largest errors for their weights, as many as a share of all weights allows."""
    sizes = {o: sum(floats.constants[t].size for t in floats.graph.op(o).inputs[1:2]) for o in errors}
    left, chosen = share * sum(sizes.values()), set[int]()
    for operator in sorted(errors, key=lambda o: (-errors[o] / max(sizes[o], 1), o)):
        if errors[operator] > 0 and sizes[operator] <= left:
            left -= sizes[operator]
            chosen.add(operator)
    return frozenset(chosen)


#: Operators that a normalization begins with, squares, and those without weights that belong to it if connected.
_ROOTS = frozenset({"RSQRT", "SQRT"})
_SQUARES = frozenset({"SQUARED_DIFFERENCE", "SQUARE", "POW"})
_AROUND = _ROOTS | {"ADD", "SUB", "MUL", "DIV", "NEG", "MEAN", "SUM", "RESHAPE", "EXPAND_DIMS", "SQUEEZE"}
#: 16 bits must reduce the loss by this factor, a decibel: they cost bytes, and time on CPUs.
_WORTH = 1.25
#: The reason why operators of normalizations stay in float.
REASON = "part of a normalization (--norms float)"


@dataclass(frozen=True, slots=True)
class WideNorms:
    """The operators of normalizations that compute in `form`, by index in the source.

    `before` and `after` are the signal-to-noise ratios of the outputs on held-back samples with 8 bits and in this
    form, dB; `added` are the bytes that the file has more.
    """

    operators: tuple[int, ...]
    form: Norms
    before: float
    after: float
    added: int


def widen_norms(form: Rewritten, task: Task, journal: Journal) -> tuple[Rewritten, Task, WideNorms | None]:
    """Return the float model, its task and the figures, with normalizations as the recipe asks for them.

    Under AUTO nothing changes if there are none, in modes without activations of 8 bits, with a budget, in portable
    models, or if 16 bits are not worth it.

    Raises:
        OptionError: The form that the recipe asks for cannot be built, or has nothing to apply to.
    """
    recipe = task.recipe
    is_free = recipe.mode in (Mode.INT8, Mode.INT8X4) and not recipe.portable and recipe.budget is None
    around = normalizations(task.floats) if is_free and recipe.norms is not Norms.INT8 else frozenset()
    if not around:
        if recipe.norms in (Norms.INT16, Norms.FLOAT):
            lack = "the model has no normalization" if is_free else "for modes int8 and int8x4 without a budget"
            raise OptionError(f"--norms {recipe.norms.value}: {lack}")
        return form, task, None
    wide = _in_float(form, task, around) if recipe.norms is Norms.FLOAT else _in_16_bits(form, task, around)
    key = entry_key("norms", recipe.candidates[0])

    def built() -> WideNorms | None:
        try:
            return _norms_try(task, *wide)
        except CalibrationError:
            raise
        except TflqError as error:
            if recipe.norms is not Norms.AUTO:
                raise OptionError(f"--norms {recipe.norms.value} cannot be built: {error}") from error
            return None

    found = journal.once(key, WideNorms, built)
    return (form, task, None) if found is None else (*wide, found)


def normalizations(floats: FloatModel) -> frozenset[int]:
    """Return the operators without weights that are connected with a root, without those at the graph's edges.

    Sums that a residual stream consists of are among them; operators that have no form of 16 bits are not, but squares
    are: they can be written as products.
    """
    graph = floats.graph
    modes, _ = modes_of(floats, Mode.INT16X8, {})
    edges = {*graph.inputs, *graph.outputs}
    free = {
        op.index
        for op in graph.ops
        if (op.name in _AROUND and modes[op.index] is not None) or (op.name in _SQUARES and _is_square(floats, op))
        if edges.isdisjoint((*op.inputs, *op.outputs)) and all(map(floats.is_float, op.outputs))
    }
    found, open_ = set[int](), [index for index in free if graph.op(index).name in _ROOTS]
    while open_:
        op = graph.op(open_.pop())
        if op.index in free and op.index not in found:
            found.add(op.index)
            open_ += [maker.index for t in op.inputs if (maker := graph.maker(t)) is not None]
            open_ += [reader.index for t in op.outputs for reader in graph.readers(t)]
    return frozenset(found)


def _is_square(floats: FloatModel, op: OperatorView) -> bool:
    if op.name == "POW":
        exponent = floats.constants.get(op.inputs[1])
        return exponent is not None and exponent.size == 1 and float(exponent.reshape(-1)[0]) == 2
    return floats.constants.keys().isdisjoint(op.inputs)


def _in_float(form: Rewritten, task: Task, around: Collection[int]) -> tuple[Rewritten, Task]:
    return form, replace(task, kept_float={**dict.fromkeys(around, REASON), **task.kept_float})


def _in_16_bits(form: Rewritten, task: Task, around: Collection[int]) -> tuple[Rewritten, Task]:
    """Return the model with its squares written as products, and the task with 16 bits around them."""
    squares = {task.floats.origins[i] for i in around if task.floats.graph.op(i).name in _SQUARES}
    changed = replaced(form.model, dict.fromkeys(_SQUARES, _product_form), squares)
    floats = prepare(changed.model)
    reasons = {task.floats.origins[i]: why for i, why in task.kept_float.items()}
    kept = {i: reasons[o] for i, n in enumerate(floats.origins) if (o := changed.origins[n]) in reasons}
    norms = normalizations(floats) - kept.keys()
    wide = Task(
        floats, task.samples, task.recipe, task.methods, kept, norms=norms, progress=task.progress, jobs=task.jobs
    )
    return compose(form, changed), wide


def _product_form(editing: Editing, operator: OperatorView) -> Rewrite:
    """Write a square, or the square of a difference, as MUL, which has a kernel of 16 bits."""
    inputs, result = [editing.new(t) for t in operator.inputs], editing.new(operator.outputs[0])
    if operator.name == "SQUARED_DIFFERENCE":
        difference = editing.tensor(operator.output(), "/difference")
        editing.operator("SUB", inputs, [difference], operator.index, "SubOptions", pot_scale_int16=False)
        inputs = [difference]
    editing.operator("MUL", [inputs[0], inputs[0]], [result], operator.index, "MulOptions")
    return rewrite_of(operator, ["MUL"], "squares have no kernel of 16 bits", 0)


def _norms_try(task: Task, form: Rewritten, wide: Task) -> WideNorms | None:
    """Build one configuration in both forms; None if the other one is not worth it."""
    fitting, judging = parted(task.samples)
    pair = [_first_equalized(t, fitting) for t in (task, wide)]
    built = [build(t) for t in pair]
    make_plan(built[1].integer.model, by_name(task.recipe.profile))
    before, after = (judged(t, b, judging) for t, b in zip(pair, built, strict=True))
    losses = [float(np.mean(score.losses)) for score in (before, after)]
    if task.recipe.norms is Norms.AUTO and losses[0] < _WORTH * losses[1]:
        return None
    chosen = wide.norms or normalizations(wide.floats)
    sources = {form.origins[wide.floats.origins[index]] for index in chosen}
    what = Norms.FLOAT if task.recipe.norms is Norms.FLOAT else Norms.INT16
    sizes = [size_of(b, t) for t, b in zip(pair, built, strict=True)]
    return WideNorms(tuple(sorted(sources)), what, before.sqnr, after.sqnr, sizes[1] - sizes[0])


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One operator of the float model, and what the outputs lose if it alone is integer.

    `sqnr` is that of the outputs, or of their worst part, in dB. `agreement` is the share of equal top-1, None if the
    output is not a row of scores.
    """

    operator: int
    op: str
    sqnr: float
    agreement: float | None


def sensitivities(
    source: Model, task: Task, judging: Iterable[Sample], journal: Journal | None = None
) -> tuple[Sensitivity, ...]:
    """Quantize each operator that the recipe's mode makes integer alone; return the most sensitive first.

    The outputs are compared with those of `source` on the samples `judging`. Weights are rounded to nearest, since
    refinements act on all operators together. An operator is skipped if its kernel refuses its operands. Work in the
    `journal` is not repeated.
    """
    notes = journal or Journal(None, {})
    recipe = replace(task.recipe, input_type=TensorType.FLOAT32, output_type=TensorType.FLOAT32, runtimes=())
    plain = replace(task, recipe=recipe, methods=replace(task.methods, refining=Refining()), progress=None)
    modes, _ = modes_of(task.floats, recipe.mode, {})
    integer = [index for index, mode in enumerate(modes) if mode is not None]
    results = list[Sensitivity | None]()
    for done, operator in enumerate(integer):
        task.tell("sensitivity", done, len(integer))
        alone = partial(_alone, source, plain, operator, range(len(modes)), judging)
        results.append(notes.once(entry_key(f"sensitivity {operator}", task.methods), Sensitivity, alone))
    return tuple(sorted((found for found in results if found is not None), key=lambda s: s.sqnr))


def _alone(
    source: Model, plain: Task, operator: int, operators: Iterable[int], judging: Iterable[Sample]
) -> Sensitivity | None:
    """Return the cost of one operator; None if its kernel refuses its operands."""
    others = {index: "the others" for index in operators if index != operator}
    try:
        built = build(replace(plain, kept_float=others))
    except TflqError:
        return None
    if operator in built.kept_float:
        return None
    comparison = compare_models(source, built.integer.model, judging)
    return Sensitivity(operator, plain.floats.graph.op(operator).name, comparison.leading, _rate(comparison))


def _rate(comparison: Fidelities) -> float | None:
    return None if comparison.agreement is None else comparison.agreement.rate


#: Less than this, in dB, is not worth an option.
_LEAST = 0.5
#: Number of costly operators that are tried.
_TRIED = 2


@dataclass(frozen=True, slots=True)
class WinBack:
    """An operator of the float model, by index and name, and what leaving it in float gives.

    `sqnr` is that of the outputs then, in dB; `gained` is how much more that is, and `added` are the bytes that the
    file has more. `tried` is the number of operators that were measured so.
    """

    operator: int
    op: str
    sqnr: float
    gained: float
    added: int
    tried: int


def win_back(
    source: Model,
    task: Task,
    result: Model,
    comparison: Fidelities,
    judging: Iterable[Sample],
    costs: Sequence[Sensitivity],
) -> WinBack | None:
    """Build `result` again with one operator in float, and compare it on the same samples.

    The two most costly operators are tried, and those that make the outputs; the one that wins back most is returned,
    None if that is less than half a dB, or if there are no `costs`.
    """
    graph = task.floats.graph
    last = [index for index, op in enumerate(graph.ops) if set(op.outputs) & set(graph.outputs)]
    tried = list(dict.fromkeys([*(cost.operator for cost in costs[:_TRIED]), *last])) if costs else []
    wins, size = [], file_size(result) if tried else 0
    for done, operator in enumerate(tried):
        task.tell("what one operator in float wins back", done, len(tried))
        try:
            again = build(replace(task, kept_float={**task.kept_float, operator: "tried"}, progress=None))
            model = finish(again.integer.model, task.recipe)
            sqnr = compare_models(source, model, judging).leading
        except TflqError:  # such as kernels that do not take both forms of an operand
            continue
        origin, gained = task.floats.origins[operator], sqnr - comparison.leading
        wins.append(WinBack(origin, graph.op(operator).name, sqnr, gained, file_size(model) - size, len(tried)))
    best = max(wins, key=lambda win: win.gained, default=None)
    return best if best is not None and math.isfinite(best.gained) and best.gained >= _LEAST else None


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
    floats: FloatModel, noises: Mapping[int, float], budget: RecipeBudget, *, are_weights: bool = False
) -> tuple[int, ...]:
    """Return operators in the order in which a budget spares them, from the noise that each adds.

    Without a bound on cost, the noisiest come first. Otherwise it is those that win back the most noise for their
    price: their shares of all weights and of all multiply-accumulates, as far as these are bounded; with `are_weights`,
    that of the weights in any case. For a knapsack of many small things, that is within one thing of the optimum
    (Dantzig 1957, "Discrete-variable extremum problems").
    """
    weights, macs = _weights(floats), shares_of(floats)
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
        self._journal, self._shares = journal, shares_of(task.floats)
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
            trial = self._journal.once(key, Trial, partial(self._judged, count))
            assert trial is not None  # each count has a result
            self._trials[count] = trial
        return self._trials[count]

    def _judged(self, count: int) -> Trial:
        built = self.built(count)
        comparison = compare_models(self._source, built.integer.model, self._judging)
        return Trial(count, size_of(built, self._task), comparison.leading, _rate(comparison))


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


def shares_of(floats: FloatModel) -> list[float]:
    """Return each operator's share of the model's multiply-accumulates."""
    counts = [macs_of(op) for op in view(floats.model).ops]
    return [count / max(1, sum(counts)) for count in counts]
