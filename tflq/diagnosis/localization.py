"""Locate differences between a dump and a profile: compute every operator and compare it with the dump."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from tflq.comparison.verification.compared import readable
from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.feeding import has_variables
from tflq.comparison.verification.handles import Handled, Memory
from tflq.comparison.verification.localization import Localizer
from tflq.comparison.verification.results import Located, Mode
from tflq.diagnosis.reuse import overwritten_by
from tflq.engine.api.part import Part, part_of, reads
from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.interpreter.unpacking import readers_left, unpackable_tensors
from tflq.engine.profiles import Profile
from tflq.errors import InputWarning, TflqError
from tflq.model.ir import Model, view
from tflq.statements import Statement
from tflq.typing import Array

#: Every operator of every sample.
BySample: TypeAlias = "tuple[tuple[Located, ...], ...]"


def localize(model: Model, dump: Dump, profile: Profile, mode: Mode = Mode.ISOLATED) -> tuple[Located, ...]:
    """Compute every operator, end to end or on the dump's inputs if it has them, and compare."""
    return tuple(locate(model, dump, profile, mode))


def locate(model: Model, dump: Dump, profile: Profile, mode: Mode = Mode.ISOLATED) -> Iterator[Located]:
    """Localize an operator at a time."""
    return (row[0] for row in _localizer(model, profile, mode).operators((dump,)))


def localize_samples(model: Model, dumps: Sequence[Dump], profile: Profile, mode: Mode = Mode.ISOLATED) -> BySample:
    """Localize every sample of a dump, its differences numbered by their sample."""
    return tuple(zip(*walk(_localizer(model, profile, mode), dumps), strict=True)) or ((),) * len(dumps)


def walk(localizer: Localizer, dumps: Sequence[Dump]) -> Iterator[tuple[Located, ...]]:
    """Yield each operator in order of execution, for every sample.

    Samples that continue begin with the state that the one before left. Then all are compared before the first one is
    yielded.
    """
    model = localizer.model
    handled = Handled(model, 0, localizer.profile) if has_variables(model) else None
    if handled is None or not (handled.operators or any(dump.continues for dump in dumps)):
        yield from localizer.operators(dumps)
        return
    graph, memory, samples = view(model), Memory(), list[tuple[Located, ...]]()
    localizer, kept = replace(localizer, handled=handled), dict[int, dict[object, Plan]]()
    for k, dump in enumerate(dumps):
        memory = memory if dump.continues else Memory()
        began = dict(memory.variables)
        row = [one for (one,) in localizer.operators([dump], k, [memory], kept)]
        held = ({t: began[t] for t in graph.op(one.index).inputs if t in began} for one in row)
        samples.append(tuple(replace(one, began={**own, **one.began}) for one, own in zip(row, held, strict=True)))
        memory.variables.update({t: v for t, v in dump.tensors.items() if graph.tensors[t].is_variable})
    yield from zip(*samples, strict=True)


def in_order(model: Model, dumps: tuple[Dump, ...], profile: Profile) -> tuple[Dump, ...]:
    """Return the samples of a model with state as steps of one run, or as separate runs.

    A recording knows the order of its samples. Else both readings are compared with the profile; fewer elements differ
    in the one that is taken, and a warning names it.
    """
    if not has_variables(model):
        return tuple(replace(dump, continues=False) if dump.continues else dump for dump in dumps)
    if len(dumps) < 2:
        return dumps
    if any(dump.continues for dump in dumps):
        return _with_state(model, dumps, profile)
    steps = tuple(replace(dump, continues=k > 0) for k, dump in enumerate(dumps))
    apart, in_steps = (_apart(localize_samples(model, some, profile)) for some in (dumps, steps))
    if apart == in_steps:
        text = (
            f"the model keeps state, and its {len(dumps)} samples compare alike as steps of one run and as runs with "
            "the initial state: the latter is assumed"
        )
    elif in_steps < apart:
        text = (
            f"the {len(dumps)} samples are read as steps of one run: the state is kept from sample to sample. If they "
            "are separate runs, the device does not reset its state between runs"
        )
    else:
        text = (
            f"the {len(dumps)} samples are read as separate runs: each begins with the initial state. If they are "
            "steps of one run, the device's state is wiped at each call, not kept"
        )
    facts = {"samples": len(dumps), "apart": apart[1], "apart_in_steps": in_steps[1]}
    warnings.warn(InputWarning(Statement(text, "samples-as-steps", **facts)), stacklevel=2)
    return _with_state(model, steps if in_steps < apart else dumps, profile)


def _apart(by_sample: BySample) -> tuple[int, int]:
    """Return the numbers of operators that were not compared and of elements that differ."""
    every = [one for row in by_sample for one in row]
    return sum(bool(one.failure) for one in every), sum(map(differing_elements, every))


def _with_state(model: Model, dumps: tuple[Dump, ...], profile: Profile) -> tuple[Dump, ...]:
    """Return the samples with the state before each, as far as the profile computes it from their inputs."""
    graph, state, known = view(model), State(), list[Dump]()
    handles = [t for op in graph.ops if op.builtin == "READ_VARIABLE" for t in op.outputs]
    for dump in dumps:
        state = state if dump.continues else State()
        inputs = {t: dump.tensors[t] for t in graph.inputs if t in dump.tensors}
        began = {t: v.copy() for t, v in state.variables.items()}
        try:
            plan = make_plan(model, profile, input_shapes={t: v.shape for t, v in inputs.items()})
            values = run(plan, inputs, state, keep_all=True).values
        except TflqError:
            return dumps
        known.append(replace(dump, variables={**began, **{t: values[t] for t in handles if t in values}}))
        state.variables.update({t: v for t, v in dump.tensors.items() if graph.tensors[t].is_variable})
    return tuple(known)


def _localizer(model: Model, profile: Profile, mode: Mode) -> Localizer:
    overwritten = partial(overwritten_by, model, profile)
    return Localizer(model, profile, mode, overwritten=overwritten, reads_constants=False, carries=True)


def most_telling(by_sample: Sequence[Sequence[Located]], index: int) -> int:
    """Return the sample in which most elements of operator `index` differ."""
    counts = [differing_elements(sample[index]) for sample in by_sample]
    return counts.index(max(counts))


def differing_elements(operator: Located) -> int:
    """Return the number of elements that differ; all of a result of another shape or type."""
    return sum(d.elements if d.problem else d.differing for d in operator.differences.values())


def trust(dump: Dump, operators: Iterable[Located]) -> Dump:
    """Return the dump without tensors that were overwritten or never written."""
    return dump.without(t for o in operators for t in (*o.overwritten, *o.unwritten))


def operators_alone(model: Model, dumps: Iterable[Dump], index: int, profile: Profile) -> Iterator[Part]:
    """Yield `operator_alone` of several samples; those without constants of their own share plans.

    Raises:
        InputError: An input is neither in the dump nor computable.
    """
    first: Part | None = None
    for dump in dumps:
        part = operator_alone(model, dump, index, profile)
        if len(part.inputs) == len(reads(model, (index,))):
            first = part if first is None else first
            part = replace(part, model=first.model, plans=first.plans)
        yield part


def operator_alone(model: Model, dump: Dump, index: int, profile: Profile) -> Part:
    """Return operator `index` on the dump's inputs; missing ones are computed from earlier tensors.

    Tensors that the runtime unpacks from constants, and never writes, are computed, and constants of the part.

    Raises:
        InputError: An input is neither in the dump nor computable.
    """
    graph = view(model)
    makers = graph.last_writers
    is_left = index in readers_left(graph, profile)
    lost = frozenset() if is_left else unpackable_tensors(graph, profile) | dump.unwritten
    folded = lost & set(graph.op(index).inputs)
    dump = dump.without(folded)
    known = readable(dump, makers, index)
    if not set(reads(model, (index,))) <= set(known):
        known = {**_compute_before(model, dump, index, profile), **known}
    results = graph.op(index).writes
    got = {t: dump.tensors[t] for t in results if t in dump.tensors and makers[t] == index}
    return replace(part_of(model, (index,), known).fixing(folded), got=got, variables=_variables(model, dump))


def _variables(model: Model, dump: Dump) -> dict[int, Array]:
    specs = view(model).tensors
    return {t: value for t, value in dump.variables.items() if specs[t].is_variable}


def _compute_before(model: Model, dump: Dump, before: int, profile: Profile) -> Mapping[int, Array]:
    """Return the results of all operators before one, on the dump's own inputs if it has them."""
    graph, variables = view(model), _variables(model, dump)
    values = {t: value for t, value in dump.variables.items() if t not in variables}
    for op in graph.ops[:before]:
        try:
            part = part_of(model, (op.index,), {**values, **readable(dump, graph.last_writers, op.index)})
            part = replace(part, variables=variables)
            computed = part.run(part.plan(profile))
        except TflqError:
            continue
        values.update({t: computed[t] for t in op.writes if t in computed})
    return values
