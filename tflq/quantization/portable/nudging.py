"""Move scales a little if several runtimes then agree on more elements.

Runtimes round the same sums in different steps, and the number of visible differences depends on the ratio of scales. A
MUL may differ in a twentieth of its elements, and with a slightly larger scale in none. Operators are processed in the
order of execution, on the inputs that the first runtime computes with the scales chosen so far. The scale of an
operator's result moves by at most REACH, and only if the number of disagreements drops significantly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.profiles import Profile, by_name
from tflq.model.ir import Model, OperatorView, TensorSpec, view
from tflq.model.surgery.edit import with_tensors
from tflq.progress import Progress
from tflq.quantization.integer_model import IntegerModel
from tflq.quantization.params import Params
from tflq.quantization.portable.portability import Alone, batched, differing, forget
from tflq.quantization.runner import Sample
from tflq.quantization.scheme import svdf
from tflq.quantization.scheme.scheme import Form, Scheme
from tflq.typing import Array

#: The farthest that a scale moves, and the number of steps on either side.
REACH, STEPS = 0.005, 8
#: Factors of a scale, the nearest to 1 first.
FACTORS = tuple(1 + sign * REACH * k / STEPS for k in range(1, STEPS + 1) for sign in (1, -1))
#: The number of removed disagreements must exceed this many times the square root of their number.
SURE = 2.0

#: A function that builds the integer model for parameters of activations.
Remake = Callable[[Mapping[Form, Params]], IntegerModel]


@dataclass(frozen=True, slots=True)
class Nudge:
    """A scale that moved: the operator of the integer model, the factor, and the disagreements before and after."""

    group: Form
    index: int
    op: str
    factor: float
    before: int
    after: int

    @property
    def is_strong(self) -> bool:
        """True if it removes at least half of the disagreements."""
        return 2 * self.after <= self.before


def nudge(
    plan: Scheme,
    activations: Mapping[Form, Params],
    remake: Remake,
    samples: Sequence[Sample],
    runtimes: Sequence[str],
    progress: Progress | None = None,
) -> tuple[Nudge, ...]:
    """Return the scales that are worth moving; `moved` applies them. Zero points stay.

    Scales that an operator or the file prescribes stay, too, and those of inputs.
    """
    integer, chosen, nudges = remake(activations), dict(activations), list[Nudge]()
    profiles = [by_name(name) for name in runtimes]
    batches, _ = batched(integer.model, plan.model.graph.inputs, samples, profiles)
    values = [dict(batch) for batch in batches]
    movable, computed = _movable(plan, integer), _compute(integer.model)
    graph = view(integer.model)
    ops, left = graph.ops, graph.uses()
    tried: set[Form] = set()
    for operator in ops:
        index = operator.index
        group = movable.get(index)
        if group is not None and group not in tried:
            tried.add(group)
            writers = [i for i, own in movable.items() if own == group and _is_known(ops[i], computed, values[0])]
            factor, before, after = _best_factor(integer.model, writers, values, profiles)
            trial = {**chosen, group: _scale(chosen[group], factor)}
            again = remake(trial) if factor != 1 else integer
            if factor != 1 and _is_alike(integer.model, again.model):
                integer, chosen = again, trial
                nudges.append(Nudge(group, index, operator.builtin, factor, before, after))
        alone = Alone(integer.model, index, profiles[:1])
        for batch in values:
            batch.update(alone.results(batch)[0])
        forget(values, left, operator.inputs)
        if progress is not None:
            progress("nudging scales of operator", index + 1, len(ops))
    return tuple(nudges)


def move(activations: Mapping[Form, Params], nudges: Sequence[Nudge]) -> dict[Form, Params]:
    """Return parameters of activations with these scales moved."""
    return {**activations, **{n.group: _scale(activations[n.group], n.factor) for n in nudges}}


def _groups(plan: Scheme, integer: IntegerModel) -> dict[int, frozenset[Form]]:
    """Return the groups whose scale each tensor of the integer model has; several if groups are equal by chance."""
    graph = view(integer.model)
    groups: dict[int, set[Form]] = {}
    for tensor, group in plan.results.items():
        if tensor in integer.tensors:
            groups.setdefault(integer.tensors[tensor], set()).add(group)
    places = {origin: index for index, origin in enumerate(integer.operators) if origin >= 0}
    for (origin, position), group in plan.read.items():
        if origin in places:
            groups.setdefault(graph.op(places[origin]).inputs[position], set()).add(group)
    return {tensor: frozenset(found) for tensor, found in groups.items()}


def _movable(plan: Scheme, integer: IntegerModel) -> dict[int, Form]:
    """Return the group whose scale each operator rounds its results to, for groups that may move."""
    groups = _groups(plan, integer)
    found = ((op.index, _movable_group(plan, integer, groups, op)) for op in view(integer.model).ops)
    return {index: group for index, group in found if group is not None}


def _movable_group(
    plan: Scheme, integer: IntegerModel, groups: Mapping[int, frozenset[Form]], operator: OperatorView
) -> Form | None:
    origin = integer.operators[operator.index]
    made = {groups.get(t, frozenset()) for t in operator.outputs}
    if len(made) != 1 or len(only := next(iter(made))) != 1 or origin in plan.cells:
        return None
    (group,) = only
    prescribed = any(t in plan.model.ranges for t in plan.members.get(group, ()))
    through = any(group in groups.get(t, ()) for t in operator.inputs)  # codes are copied, not rounded
    of_states = any(group == plan.read.get((index, svdf.X)) for index in plan.states.values())
    if prescribed or through or of_states or group in plan.fixed or group in plan.states:
        return None
    return group


def _compute(model: Model) -> frozenset[int]:
    """Return the tensors that operators produce."""
    return frozenset(view(model).computed)


def _is_known(operator: OperatorView, computed: Collection[int], values: Mapping[int, Array]) -> bool:
    """Return whether all inputs of an operator are at hand: values, or constants of the file."""
    return all(t in values for t in operator.inputs if t in computed)


def _best_factor(
    model: Model, writers: Sequence[int], values: Sequence[Mapping[int, Array]], profiles: Sequence[Profile]
) -> tuple[float, int, int]:
    """Return the factor of the writers' output scale with the fewest disagreements, and the counts before and after."""

    def count(factor: float) -> int:
        return sum(
            sum(differing(alone.results(batch)))
            for index in writers
            for alone in [Alone(_with_outputs_scaled(model, index, factor), index, profiles)]
            for batch in values
        )

    before = best = count(1.0)
    chosen = 1.0
    for factor in FACTORS if before > SURE * math.sqrt(before) else ():
        now = count(factor)
        if now < best and before - now > SURE * math.sqrt(before):
            best, chosen = now, factor
        if not best:
            break
    return chosen, before, best


def _with_outputs_scaled(model: Model, index: int, factor: float) -> Model:
    """Return the model with other scales for the outputs of one operator."""
    if factor == 1:
        return model
    graph = view(model)
    return with_tensors(model, {t: _rescale(graph.tensors[t], factor) for t in graph.op(index).outputs})


def _rescale(spec: TensorSpec, factor: float) -> TensorSpec:
    q = spec.quantization
    return spec if q is None else replace(spec, quantization=replace(q, scale=_times(q.scale, factor)))


def _scale(params: Params, factor: float) -> Params:
    return replace(params, scale=_times(params.scale, factor))


def _times(scale: Array, factor: float) -> Array:
    """Return scales moved by a factor, rounded to float32."""
    return (scale.astype(np.float64) * factor).astype(np.float32)


def _is_alike(one: Model, other: Model) -> bool:
    """Return whether two models have the same operators on the same tensors; scales are ignored."""
    first, second = view(one), view(other)
    return len(first.tensors) == len(second.tensors) and [(o.inputs, o.outputs) for o in first.ops] == [
        (o.inputs, o.outputs) for o in second.ops
    ]
