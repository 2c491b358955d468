"""Agreement of several runtimes, and scales moved to increase it.

Agreement of several runtimes on an integer model, operator by operator and at its outputs.

Each operator runs alone under every runtime, on the inputs that the first runtime computes: a difference there is its
own. Then the whole model runs under each runtime, and the outputs show the remaining differences.

Move scales a little if several runtimes then agree on more elements.

Runtimes round the same sums in different steps, and the number of visible differences depends on the ratio of scales. A
MUL may differ in a twentieth of its elements, and with a slightly larger scale in none. Operators are processed in the
order of execution, on the inputs that the first runtime computes with the scales chosen so far. The scale of an
operator's result moves by at most REACH, and only if the number of disagreements drops significantly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

import numpy as np

from tflq.comparison.inspection.difference import unequal
from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.interrupts import Progress
from tflq.model.ir import Model, OperatorView, TensorSpec, view
from tflq.model.surgery.cut import cut
from tflq.model.surgery.tap import with_tensors
from tflq.quantization.draft import IntegerModel
from tflq.quantization.frontier import Runner, Sample, batchable, join
from tflq.quantization.params import Params, codes_of
from tflq.quantization.scheme import operands
from tflq.quantization.scheme.scheme import Form, Scheme
from tflq.typing import Array

#: The limit on bytes of all kept tensors of the samples, and the least number of samples.
LOOKED_AT, LEAST = 64 << 20, 4

#: Tensors by index, for one or more samples along axis 0.
Values = Mapping[int, Array]


@dataclass(frozen=True, slots=True)
class OperatorDifferences:
    """One operator on the same inputs under each runtime: its number of elements, and how many differ.

    `differing` has one entry for each runtime after the first, with which they are compared.
    """

    index: int
    op: str
    elements: int
    differing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Portability:
    """Agreement of runtimes with the first one, over some samples.

    `elements` is the number of elements of the model's outputs. `differing` counts, for each other runtime, those that
    differ if the whole model runs there. `operators` give the differences that each operator adds alone.
    """

    runtimes: tuple[str, ...]
    samples: int
    elements: int
    differing: tuple[int, ...]
    operators: tuple[OperatorDifferences, ...]

    @property
    def total(self) -> int:
        """Number of elements that operators alone compute differently, over all runtimes."""
        return sum(sum(operator.differing) for operator in self.operators)


class Alone:
    """One operator of a model, run by itself under several runtimes."""

    def __init__(self, model: Model, index: int, profiles: Sequence[Profile]) -> None:
        self._whole, self._index, self._profiles = model, index, profiles
        self._cuts: dict[bool, tuple[Model, tuple[int, ...]]] = {}
        self._plans: dict[tuple[int, tuple[tuple[int, ...], ...]], Plan] = {}

    def results(self, values: Values) -> list[dict[int, Array]]:
        """Return the results of the operator for `values` under each runtime, by the original tensor index."""
        model, tensors = self._cut(values)
        graph = view(model)
        inputs = {i: values[tensors[i]] for i in graph.inputs}
        shapes = tuple(array.shape for array in inputs.values())
        results = []
        for number, profile in enumerate(self._profiles):
            if (number, shapes) not in self._plans:
                by_input = {i: array.shape for i, array in inputs.items()}
                self._plans[number, shapes] = make_plan(model, profile, input_shapes=by_input)
            trace = run(self._plans[number, shapes], inputs, State())
            results.append({tensors[i]: trace.values[i] for i in graph.outputs})
        return results

    def _cut(self, values: Values) -> tuple[Model, tuple[int, ...]]:
        """Return the operator as a model; for joined samples with shapes in the file that take any number of them."""
        tensors = view(self._whole).tensors
        read = [t for t in view(self._whole).op(self._index).inputs if t in values]
        is_joined = any(values[t].shape != tuple(tensors[t].shape) for t in read)
        if is_joined not in self._cuts:
            self._cuts[is_joined] = cut(batchable(self._whole) if is_joined else self._whole, [self._index])
        return self._cuts[is_joined]


def differing(results: Sequence[Values]) -> tuple[int, ...]:
    """Return, for each result after the first, the number of elements that differ from the first."""
    first, *others = results
    return tuple(sum(int(np.count_nonzero(unequal(first[t], other[t]))) for t in first) for other in others)


def portability(model: Model, inputs: Sequence[int], samples: Iterable[Sample], runtimes: Sequence[str]) -> Portability:
    """Compare runtimes on as many samples as LOOKED_AT allows. `inputs` are the samples' names of the model's inputs.

    Raises:
        TflqError: A runtime does not take the model.
    """
    profiles, graph = [by_name(name) for name in runtimes], view(model)
    batches, count = batched(model, inputs, samples, profiles)
    values = [dict(batch) for batch in batches]
    left = graph.uses()
    operators = []
    for operator in graph.ops:
        alone, counts, elements = Alone(model, operator.index, profiles), np.zeros(len(profiles) - 1, np.int64), 0
        for batch in values:
            results = alone.results(batch)
            counts += differing(results)
            elements += sum(array.size for array in results[0].values())
            batch.update(results[0])
        forget(values, left, operator.inputs)  # all samples of a large model do not fit at once
        found = tuple(map(int, counts))
        operators.append(OperatorDifferences(operator.index, operator.builtin, elements, found))
    whole = batchable(model) if count > len(batches) else model
    outputs = [list(Runner(whole, graph.outputs, name).run(batches, 1)) for name in runtimes]
    ends = sum((np.array(differing(results)) for results in zip(*outputs, strict=True)), np.zeros(len(profiles) - 1))
    size = sum(array.size for row in outputs[0] for array in row.values())
    return Portability(tuple(runtimes), count, size, tuple(map(int, ends)), tuple(operators))


def batched(
    model: Model, inputs: Sequence[int], samples: Iterable[Sample], profiles: Sequence[Profile]
) -> tuple[list[Sample], int]:
    """Return the first samples as the model takes them, and their number.

    They are joined if that changes no runtime's bits.
    """
    graph = view(model)
    pairs = list(zip(inputs, graph.inputs, strict=True))
    size = sum(prod(graph.tensors[t].shape) for operator in graph.ops for t in operator.outputs)
    first = islice(samples, max(LEAST, LOOKED_AT // max(1, size)))
    codes = [{n: codes_of(graph.tensors[n], sample[o]) for o, n in pairs} for sample in first]
    together = min(Runner(model, None, profile.name).together(codes) for profile in profiles)
    groups = [codes[start : start + together] for start in range(0, len(codes), together)]
    return [join(group) if len(group) > 1 else group[0] for group in groups], len(codes)


def forget(values: Sequence[dict[int, Array]], left: Counter[int], read: Sequence[int]) -> None:
    """Drop the tensors that an operator was the last to read; `left` counts remaining readers."""
    left.subtract(read)
    for tensor in read:
        if left[tensor] <= 0:
            for batch in values:
                batch.pop(tensor, None)


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
    of_states = any(group == plan.read.get((index, operands.X)) for index in plan.states.values())
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
