"""One configuration carried out: from a prepared float model and samples to an integer model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tflq.errors import ModelError, UndefinedResultError, UnsupportedError
from tflq.interpreter import make_plan
from tflq.profiles import by_name
from tflq.quantization.build.assignment import Assignment, activation_params, assign, weight_params
from tflq.quantization.build.rewriting import rewritten
from tflq.quantization.build.task import Task
from tflq.quantization.integer_model import IntegerModel
from tflq.quantization.params import Params
from tflq.quantization.ranges.activations import activation_ranges
from tflq.quantization.ranges.biases import fitted_weights, raised
from tflq.quantization.ranges.observation import Observations, observe
from tflq.quantization.ranges.observers import Channels
from tflq.quantization.ranges.weights import weight_ranges
from tflq.quantization.recipe.recipe import Mode
from tflq.quantization.refine.equalization import equalized
from tflq.quantization.refine.groups import channel_groups
from tflq.quantization.refine.sequence import Refinements, Subject, float_sums, refinable, refined
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.scheme.scheme import REFERENCE_PROFILE, Form, Scheme, Slot, modes_of, scheme


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """An integer model; `kept_float` says why operators of the float model stayed as they are, by index."""

    integer: IntegerModel
    assignment: Assignment
    kept_float: Mapping[int, str]


def build(task: Task) -> Built:
    """Carry out the task's methods. Operators that a kernel refuses stay in float, too.

    The samples are iterated once for every method that looks at them.
    """
    floats, ranging = _equalized(task), task.methods.ranging
    kept_float = dict(task.kept_float)
    while True:
        modes, reasons = _modes(task, floats, kept_float)
        plan = scheme(floats, modes)
        spanning = weight_params(plan, weight_ranges(plan, ranging.weights, task.samples))
        ranges = activation_ranges(plan, task.samples, ranging, spanning, task.progress)
        activations = activation_params(plan, ranges, ranging.rule)
        weights = fitted_weights(plan, activations, spanning)
        refinements = _refined(task, plan, activations, weights)
        assignment = _assignment(task, plan, activations, refinements)
        assignment = replace(assignment, notes=raised(spanning, weights))
        integer = rewritten(assignment)
        refusal = _refusal(integer)
        if refusal is None:
            return Built(integer, assignment, reasons)
        index, reason = refusal
        kept_float[index] = reason


def _modes(
    task: Task, floats: FloatModel, kept_float: Mapping[int, str]
) -> tuple[tuple[Mode | None, ...], dict[int, str]]:
    """Return what each operator computes with, and why those that stay in float do."""
    modes, reasons = modes_of(floats, task.recipe.mode, kept_float)
    if task.wide:
        wider, _ = modes_of(floats, Mode.INT16X8, kept_float)
        modes = tuple(wider[i] or mode if i in task.wide else mode for i, mode in enumerate(modes))
    return modes, reasons


def _refined(
    task: Task, plan: Scheme, activations: Mapping[Form, Params], weights: Mapping[Slot, Params]
) -> Refinements:
    methods = task.methods.refining
    if methods.changes_nothing:
        return Refinements(weights)
    integer = rewritten(_assignment(task, plan, activations, Refinements(weights)))
    subject = Subject(plan, activations, weights, integer, task.recipe.executor)
    sums = float_sums(plan.model, refinable(plan), islice(task.samples, methods.samples))
    return refined(subject, methods, task.samples, sums, task.progress)


def _assignment(task: Task, plan: Scheme, activations: Mapping[Form, Params], refinements: Refinements) -> Assignment:
    return assign(plan, activations, refinements.weights, task.recipe, refinements.codes, refinements.biases)


def _equalized(task: Task) -> FloatModel:
    """Return the float model with its channels equalized, if the methods ask for it."""
    groups = () if task.methods.equalize is None else channel_groups(task.floats)
    if task.methods.equalize is None or not groups:
        return task.floats
    tensors = dict.fromkeys(t for group in groups for t in group.tensors)
    seen = observe(task.floats.model, task.samples, Observations.begin(tensors, Channels()), task.progress)
    channels = {t: observer for t, (observer,) in seen.of.items() if isinstance(observer, Channels)}
    magnitudes = {t: np.maximum(-c.low, c.high) for t, c in channels.items()}
    return equalized(task.floats, magnitudes, task.methods.equalize)


def _refusal(result: IntegerModel) -> tuple[int, str] | None:
    """Return the first operator whose kernel does not take its operands (the float model's index), and why."""
    try:
        make_plan(result.model, by_name(REFERENCE_PROFILE))
    except (ModelError, UndefinedResultError, UnsupportedError) as error:
        origin = -1 if error.index is None else result.operators[error.index]
        if origin < 0:
            raise
        return origin, f"LiteRT's kernel does not take it: {error.reason or error}"
    return None
