"""Shrink a difference: to the smallest run of operators, then to one element, then to few values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.inspection.difference import difference, same_bits, unequal
from tflq.comparison.results import Located
from tflq.diagnosis.crops import narrowings
from tflq.diagnosis.localization import locate, operator_alone, trust
from tflq.engine.api.many import Part
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile
from tflq.errors import InputError, TflqError
from tflq.model.ir import Model, view, with_graph
from tflq.model.surgery.cut import compact, cut
from tflq.texts import Documented, display_by
from tflq.typing import Array

Sample: TypeAlias = "tuple[Array, ...]"
#: A function that returns True if a model still shows the difference on a sample.
Check: TypeAlias = "Callable[[Model, Sample], bool]"


@display_by("reduce:reduce_card", "reduce_document")
@dataclass(frozen=True, slots=True, eq=False)
class Reduced(Documented):
    """The remaining model. `operators` are indices of the original; `expected` are the profile's outputs for `sample`.

    `got` are the dump's outputs; with a check they are unknown and None.
    """

    model: Model
    operators: tuple[int, ...]
    sample: Sample
    expected: Sample
    got: Sample | None


def reduce_dump(model: Model, profile: Profile, dump: Dump) -> Reduced:
    """Return the first operator whose bits on the dump's own inputs differ from the dump, at one of its elements.

    The profile computes inputs that the dump lacks.

    Raises:
        InputError: No operator whose results the dump holds differs.
    """
    compared: list[Located] = []
    for one in locate(model, dump, profile):
        compared.append(one)
        if one.differs:
            alone = operator_alone(model, trust(dump, compared), one.index, profile)
            return _at_one_element(_whole(alone, profile), profile)
    not_run = next((f"; operator {o.index} {o.op} was not run: {o.failure}" for o in compared if o.failure), "")
    raise InputError(f"no operator with inputs and outputs in the dump differs from it{not_run}")


def _whole(alone: Part, profile: Profile) -> Reduced:
    """Return the operator unchanged, with the outputs that the dump holds."""
    graph = alone.graph
    kept = tuple(t for t in graph.outputs if alone.tensors[t] in alone.got)
    part = with_graph(alone.model, replace(graph.record, outputs=kept))
    sample = tuple(alone.inputs[t] for t in graph.inputs)
    got = tuple(alone.got[alone.tensors[t]] for t in kept)
    return Reduced(compact(part), (alone.index,), sample, outputs_of(part, profile, sample), got)


def _at_one_element(whole: Reduced, profile: Profile) -> Reduced:
    """Return the model narrowed to a differing element, if the profile gives the same bits there as in the whole.

    Other elements that the cut changed have the profile's values.
    """
    if len(whole.expected) != 1 or whole.got is None or whole.expected[0].shape != whole.got[0].shape:
        return whole
    expected, got = whole.expected[0], whole.got[0]
    best = whole
    for element in _elements(expected, got):
        for model, sample, selection in narrowings(whole.model, whole.sample, _box(element)):
            result = _outputs_or_none(model, profile, sample)
            if result is None or result[0].size >= best.expected[0].size:
                continue
            device = _device_of(expected[selection], got[selection], result[0])
            if device is not None and not difference(result[0], device).same:
                best = Reduced(compact(model), whole.operators, sample, result, (device,))
        if best.expected[0].size == 1:
            break
    return best


def _device_of(expected: Array, got: Array, result: Array) -> Array | None:
    """Return the device's values of a part: `got` if the profile's `result` is the whole's, else the result."""
    if (result.shape, result.dtype) != (expected.shape, expected.dtype):
        return None
    return np.where(unequal(expected, result), result, got)


def _elements(expected: Array, got: Array) -> list[tuple[int, ...]]:
    """Return differing elements to try: evenly spread, since an edge may prevent some from being narrowed."""
    where = np.argwhere(unequal(expected, got))
    picks = np.unique(np.linspace(0, len(where) - 1, min(len(where), 16)).astype(int))
    return [tuple(int(i) for i in where[k]) for k in (*picks[len(picks) // 2 :], *picks[: len(picks) // 2])]


def reduce_check(model: Model, profile: Profile, sample: Sample, check: Check) -> Reduced:
    """Shrink the model while `check` holds. The profile computes the inputs of a part.

    Raises:
        InputError: The check does not hold for the unchanged model.
    """
    if not check(model, sample):
        raise InputError("the check shows no difference for the unchanged model")
    graph = view(model)
    values = run(make_plan(model, profile), dict(zip(graph.inputs, sample, strict=True)), keep_all=True).values
    chosen, part, sample = _operators(model, values, sample, check)
    if len(chosen) == 1:
        part, sample = _narrow_checked(part, sample, profile, check)
        part, sample = _quarter(part, sample, profile, check)
    sample = _fewer_values(part, sample, check)
    return Reduced(part, chosen, sample, outputs_of(part, profile, sample), None)


def _operators(
    model: Model, values: Mapping[int, Array], sample: Sample, check: Check
) -> tuple[tuple[int, ...], Model, Sample]:
    """Halve the run of operators while one half shows the difference, then drop operators from its ends."""
    chosen = tuple(range(len(view(model).ops)))
    best = model, sample
    while len(chosen) > 1:
        middle = len(chosen) // 2
        tries: list[Sequence[int]] = [chosen[:middle], chosen[middle:]]
        if len(chosen) > 2:
            tries += [chosen[:-1], chosen[1:]]
        for candidate in tries:
            part, numbers = cut(model, candidate)
            if not all(numbers[t] in values for t in view(part).inputs):
                continue
            fed = tuple(values[numbers[t]] for t in view(part).inputs)
            if check(compact(part), fed):
                chosen, best = tuple(candidate), (compact(part), fed)
                break
        else:
            break
    return chosen, *best


def _narrow_checked(model: Model, sample: Sample, profile: Profile, check: Check) -> tuple[Model, Sample]:
    """Return the model narrowed to an element at which the check still holds.

    A few elements are tried, spread over the output.
    """
    shape = outputs_of(model, profile, sample)[0].shape
    size = int(np.prod(shape, dtype=np.int64))
    for flat in np.unique(np.linspace(0, max(size - 1, 0), 8).astype(np.int64)):
        element = tuple(int(i) for i in np.unravel_index(int(flat), shape))
        for smaller, fed, _ in narrowings(model, sample, _box(element)):
            if _outputs_or_none(smaller, profile, fed) is not None and check(compact(smaller), fed):
                return compact(smaller), fed
    return model, sample


def _quarter(model: Model, sample: Sample, profile: Profile, check: Check) -> tuple[Model, Sample]:
    """Halve the height and width of a one-channel image while the check still holds."""
    while True:
        shape = outputs_of(model, profile, sample)[0].shape
        if len(shape) != 4 or shape[0] != 1 or shape[3] != 1:
            return model, sample
        rims = (0, 1) if min(shape[1:3]) > 4 else (0,)
        boxes = [
            (slice(0, 1), y, x, slice(0, 1)) for r in rims for y in _halves(shape[1], r) for x in _halves(shape[2], r)
        ]
        ways = ((m, fed) for box in boxes for m, fed, _ in narrowings(model, sample, box))
        less = ((compact(m), fed) for m, fed in ways if _is_less(m, fed, profile, shape))
        narrower = next(((m, fed) for m, fed in less if check(m, fed)), None)
        if narrower is None:
            return model, sample
        model, sample = narrower


def _halves(extent: int, rim: int) -> list[slice]:
    """Return both halves, without the rim, whose windows may lie over an edge."""
    middle = (extent + 1) // 2
    return [s for s in (slice(rim, middle), slice(middle, extent - rim)) if s.start < s.stop]


def _is_less(model: Model, sample: Sample, profile: Profile, shape: tuple[int, ...]) -> bool:
    outputs = _outputs_or_none(model, profile, sample)
    return outputs is not None and outputs[0].size < int(np.prod(shape, dtype=np.int64))


def _box(element: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(i, i + 1) for i in element)


def _fewer_values(model: Model, sample: Sample, check: Check) -> Sample:
    """Return the sample with blocks of input values set to the code of zero while the check holds.

    The blocks are halves, quarters, eighths.
    """
    graph = view(model)
    zeros = [graph.zero_point(tensor) for tensor in graph.inputs]
    for position, zero in enumerate(zeros):
        for parts in (1, 2, 4, 8):
            for block in np.array_split(np.arange(sample[position].size), parts):
                changed = sample[position].copy()
                changed.reshape(-1)[block] = zero
                candidate = (*sample[:position], changed, *sample[position + 1 :])
                if not same_bits(changed, sample[position]) and check(model, candidate):
                    sample = candidate
    return sample


def outputs_of(model: Model, profile: Profile, sample: Sample) -> Sample:
    """Return the profile's outputs."""
    graph = view(model)
    shapes = {t: v.shape for t, v in zip(graph.inputs, sample, strict=True)}
    trace = run(make_plan(model, profile, input_shapes=shapes), dict(zip(graph.inputs, sample, strict=True)))
    return tuple(trace.values[t] for t in graph.outputs)


def _outputs_or_none(model: Model, profile: Profile, sample: Sample) -> Sample | None:
    try:
        return outputs_of(model, profile, sample)
    except TflqError:
        return None
