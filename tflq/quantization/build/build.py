"""Build one configuration: a prepared float model and samples become an integer model.

The inputs that travel together while a model is quantized.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.engine.interpreter import make_plan
from tflq.engine.profiles import by_name
from tflq.errors import ModelError, TflqError, UndefinedResultError, UnsupportedError
from tflq.interrupts import Progress
from tflq.model.ir import Model, view
from tflq.quantization.build.writer import Assignment, activation_params, assign, rewritten, weight_params
from tflq.quantization.draft import IntegerModel
from tflq.quantization.frontier import Sample, SharedValues
from tflq.quantization.params import Params, Range
from tflq.quantization.portable.editing import Rewrite
from tflq.quantization.portable.grid import CONSTRAINTS, equalize_on_grid, portable_scales
from tflq.quantization.portable.tables import PART_OF_TABLE, with_tables
from tflq.quantization.portable.targets import targets
from tflq.quantization.quarters import parts_of, quarters_of, whole
from tflq.quantization.ranges.choice import Chooser, activation_ranges
from tflq.quantization.ranges.observers import ChannelEnds
from tflq.quantization.ranges.watching import Observations, Watching
from tflq.quantization.ranges.weights import fitted_weights, raised, weight_ranges
from tflq.quantization.recipe import Methods, Mode, RangeTarget, Recipe, WatchOrder
from tflq.quantization.refine.groups import channel_groups, equalized
from tflq.quantization.refine.moments import MatrixProduct, RowSums
from tflq.quantization.refine.sequence import FloatSums, RefinedOperator, Refinements, refinable, refined
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.scheme import NONE, REFERENCE_PROFILE, Constraints, Form, Scheme, Slot, modes_of, scheme


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A float model to be quantized by the `methods` of a recipe on calibration samples.

    `kept_float` gives the reason, by index, why operators stay in float. `wide` operators compute in the wider mode of
    the recipe's budget, if they can, and `norms` with activations of 16 bits; `portable` ones give the same bits on the
    runtimes that it is portable to. Up to
    `jobs` processes work on the task at the same time. Tasks of the same float model have `shared` in common, and its
    observations in `watching`. `reference` computes the scores to be kept, if it is another model with the same tensors
    than `floats`, whose loops are then integer.
    """

    floats: FloatModel
    samples: Sequence[Sample]
    recipe: Recipe
    methods: Methods
    kept_float: Mapping[int, str] = field(default_factory=dict)
    wide: frozenset[int] = frozenset()
    norms: frozenset[int] = frozenset()
    portable: frozenset[int] = frozenset()
    progress: Progress | None = None
    jobs: int = 1
    reference: Model | None = None
    shared: SharedValues = field(default_factory=SharedValues)
    watching: Watching = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "watching", self.shared.once("watching", lambda: Watching(self.shared, self.jobs)))

    def tell(self, phase: str, done: int, total: int) -> None:
        """Report progress to the listener, if there is one; `total` is 0 if it is unknown."""
        if self.progress is not None:
            self.progress(phase, done, total)


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """An integer model; `kept_float` gives the reason, by index, why operators of the float model stayed in float.

    It was assigned from the parameters of `activations` and from `refinements`, and can be assigned again from others.
    """

    integer: IntegerModel
    assignment: Assignment
    kept_float: Mapping[int, str]
    activations: Mapping[Form, Params]
    refinements: Refinements
    tables: tuple[Rewrite, ...] = ()  # that replace operators of a portable model

    def again(self, recipe: Recipe, activations: Mapping[Form, Params]) -> Built:
        """Return the model rebuilt with other parameters of activations; everything else stays."""
        refinements = self.refinements
        plan, notes = self.assignment.scheme, self.assignment.notes
        assignment = assign(plan, activations, refinements.weights, recipe, refinements.codes, refinements.biases)
        assignment = replace(assignment, notes=notes)
        return replace(self, integer=rewritten(assignment), assignment=assignment, activations=activations)


def _written(assignment: Assignment, task: Task) -> tuple[IntegerModel, tuple[Rewrite, ...]]:
    """Return the integer model; of a portable one, with tables in place of pointwise operators."""
    integer = rewritten(assignment)
    return with_tables(integer, targets(task.recipe.portable), task.portable) if task.portable else (integer, ())


def build(task: Task) -> Built:
    """Apply the task's methods. Operators that a kernel refuses stay in float, too.

    Results that other tasks with the same `shared` have computed are reused.
    """
    floats, ranging = _equalize(task), task.methods.ranging
    kept_float = dict(task.kept_float)
    while True:
        modes, reasons = _modes(task, floats, kept_float)
        plan = scheme(floats, modes, _constraints(task))
        spanning = weight_params(plan, _weight_ranges(task, plan))
        activations = activation_params(plan, _activation_ranges(task, plan, spanning), ranging.rule)
        weights = fitted_weights(plan, activations, spanning)
        notes = raised(spanning, weights)
        if task.portable:
            activations, weights = portable_scales(plan, activations, weights, task.portable)
            if task.methods.equalize is not None:
                plan = scheme(_on_grid(task, plan, activations), modes, _constraints(task))
                weights = fitted_weights(plan, activations, weight_params(plan, _weight_ranges(task, plan)))
                activations, weights = portable_scales(plan, activations, weights, task.portable)
        refinements = _refine(task, plan, activations, weights)
        assignment = _assignment(task, plan, activations, refinements)
        assignment = replace(assignment, notes={**notes, **refinements.notes})
        integer, tables = _written(assignment, task)
        refusal = _refusal(integer)
        if refusal is None:
            _refuse_runtimes(integer, task.recipe)
            reasons = {i: why for i, why in reasons.items() if why != PART_OF_TABLE or _is_left(floats, integer, i)}
            return Built(integer, assignment, reasons, activations, refinements, tables)
        index, reason = refusal
        kept_float[index] = reason


def _constraints(task: Task) -> Constraints:
    return replace(CONSTRAINTS, operators=task.portable) if task.portable else NONE


def _is_left(floats: FloatModel, integer: IntegerModel, index: int) -> bool:
    """Return whether an operator of the float model is one of the integer model, too."""
    name = floats.graph.op(index).name
    return any(
        op.name == name
        for op, origin in zip(view(integer.model).ops, integer.operators, strict=True)
        if origin == index
    )


def _modes(
    task: Task, floats: FloatModel, kept_float: Mapping[int, str]
) -> tuple[tuple[Mode | None, ...], dict[int, str]]:
    """Return each operator's mode, and the reason why an operator stays in float."""
    modes, reasons = modes_of(floats, task.recipe.mode, kept_float)
    for chosen, word in ((task.norms, Mode.INT16X8.value), (task.wide, task.recipe.spared.value)):
        if chosen:
            wider, _ = modes_of(floats, Mode(word), kept_float)
            modes = tuple(wider[i] or mode if i in chosen else mode for i, mode in enumerate(modes))
    return modes, reasons


def foreseen(task: Task) -> None:
    """Announce the observations of the task's float model that `build` needs."""
    floats, ranging = _equalize(task), task.methods.ranging
    plan = scheme(floats, _modes(task, floats, task.kept_float)[0], _constraints(task))
    if ranging.order is WatchOrder.FLOAT:
        task.watching.expect(floats, Chooser(plan, ranging, {}).begin())
    if not task.methods.refining.changes_nothing:
        task.watching.expect(floats, _row_sums(refinable(plan)))


def share_parts(task: Task) -> None:
    """Compute the parts that tasks of the same samples share: ranges and sums of the float model."""
    floats, ranging = _equalize(task), task.methods.ranging
    plan = scheme(floats, _modes(task, floats, task.kept_float)[0], _constraints(task))
    spanning = weight_params(plan, _weight_ranges(task, plan))
    if ranging.order is WatchOrder.FLOAT:
        _activation_ranges(task, plan, spanning)
    if not task.methods.refining.changes_nothing:
        _float_sums(task, plan)


def _weight_ranges(task: Task, plan: Scheme) -> dict[Slot, Range]:
    search = task.methods.ranging.weights
    output = search is not None and search.target is RangeTarget.OUTPUT
    key = "weight ranges", _content(task, plan), search, quarters_of(task.samples) if output else None
    return task.shared.once(key, lambda: weight_ranges(plan, search, task.samples, task.watching))


def _activation_ranges(task: Task, plan: Scheme, weights: Mapping[Slot, Params]) -> dict[int, Range]:
    ranging = task.methods.ranging
    key = "activation ranges", _content(task, plan), ranging, quarters_of(task.samples)
    return task.shared.once(
        key, lambda: activation_ranges(plan, task.samples, task.watching, ranging, weights, task.progress)
    )


def _content(task: Task, plan: Scheme) -> tuple[bytes, tuple[Mode | None, ...]]:
    """Return the inputs on which a scheme's ranges depend, besides samples and methods."""
    return task.shared.constants(plan.model.constants), plan.modes


def _refine(
    task: Task, plan: Scheme, activations: Mapping[Form, Params], weights: Mapping[Slot, Params]
) -> Refinements:
    methods = task.methods.refining
    if methods.changes_nothing:
        return Refinements(weights)
    integer, _ = _written(_assignment(task, plan, activations, Refinements(weights)), task)
    kept = frozenset() if task.recipe.refine_trained else plan.model.trained
    subject = RefinedOperator(plan, activations, weights, integer, task.recipe.executor, kept, task.shared)
    return refined(subject, methods, task.samples, _float_sums(task, plan), task.progress)


def _row_sums(products: Sequence[MatrixProduct]) -> Observations:
    of: dict[int, tuple[RowSums, ...]] = {}
    for product in products:
        of[product.multiplied.data] = (*of.get(product.multiplied.data, ()), RowSums(product))
    return Observations(of)


def _float_sums(task: Task, plan: Scheme) -> FloatSums:
    """Return the sums of the rows that each operator sees in the float model, over the refinement samples."""
    products = refinable(plan)
    observations = task.watching.observe(plan.model, task.samples, _row_sums(products), task.progress)
    order = [number for part in parts_of(task.samples) for number in part.numbers]
    looked_at = sorted(order)[: task.methods.refining.samples]
    places = [order.index(number) for number in looked_at]
    observers = (o for of in observations.of.values() for o in of if isinstance(o, RowSums))
    return {o.product.multiplied.operator: o.total(places) for o in observers}


def _assignment(task: Task, plan: Scheme, activations: Mapping[Form, Params], refinements: Refinements) -> Assignment:
    return assign(plan, activations, refinements.weights, task.recipe, refinements.codes, refinements.biases)


def _equalize(task: Task) -> FloatModel:
    """Return the float model with its channels equalized, if the methods ask for it.

    Held-back samples are included, so that all rounds and the last fit use the same float model.
    """
    strength, samples = task.methods.equalize, whole(task.samples)
    if strength is None:
        return task.floats
    return task.shared.once(("equalized", strength), lambda: _equalize_on(task, samples, strength))


def _on_grid(task: Task, plan: Scheme, activations: Mapping[Form, Params]) -> FloatModel:
    tensors = dict.fromkeys(t for group in channel_groups(plan.model) for t in group.tensors)
    tensors.update(dict.fromkeys(m.data for m in plan.multiplied if m.data not in plan.model.constants))
    return equalize_on_grid(plan, activations, task.portable, _extents(task, plan.model, whole(task.samples), tensors))


def _extents(task: Task, model: FloatModel, samples: Sequence[Sample], tensors: Iterable[int]) -> dict[int, Range]:
    """Return the least and the greatest value of each channel of activations, by tensor."""
    observations = task.watching.observe(model, samples, Observations.begin(tensors, ChannelEnds()), task.progress)
    return {t: Range(c.low, c.high) for t, (c,) in observations.of.items() if isinstance(c, ChannelEnds)}


def _equalize_on(task: Task, samples: Sequence[Sample], strength: float) -> FloatModel:
    groups = channel_groups(task.floats)
    if not groups:
        return task.floats
    tensors = dict.fromkeys(t for group in groups for t in group.tensors)
    extents = _extents(task, task.floats, samples, tensors)
    return equalized(task.floats, {t: np.maximum(-e.low, e.high) for t, e in extents.items()}, strength)


def _refuse_runtimes(integer: IntegerModel, recipe: Recipe) -> None:
    """Refuse a model that one of the recipe's several runtimes does not take: every candidate would fail there."""
    for name in recipe.judges if recipe.runtimes else ():
        try:
            make_plan(integer.model, by_name(name))
        except TflqError as error:
            raise ModelError(
                f"runtime {name} does not take the integer model ({error}); leave that runtime out, or change the model"
            ) from error


def _refusal(result: IntegerModel) -> tuple[int, str] | None:
    """Return the first operator whose kernel does not take its operands (the float model's index), and the reason."""
    try:
        make_plan(result.model, by_name(REFERENCE_PROFILE))
    except (ModelError, UndefinedResultError, UnsupportedError) as error:
        origin = -1 if error.index is None else result.operators[error.index]
        if origin < 0:
            raise
        return origin, f"LiteRT's kernel does not take it: {error.reason or error}"
    return None
