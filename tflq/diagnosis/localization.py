"""Where a dump differs from a profile: signatures, reused memory, operators.

Memory that a runtime reused: dumped values that a later operator had overwritten before the dump was taken.

A dump that is read after the run holds one state of the memory. If a later tensor used the same place, both entries
have the same bytes wherever they overlap. That alone proves nothing: an operator that only moves elements copies a
faulty tensor. So the operators between the two are computed, which shows which one is true.

Locate differences between a dump and a profile: compute every operator and compare it with the dump.

Dumps of models with several signatures: which signature a dump is of.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.evidence.dumps import Dump, dump_of, dumps_of_recording, load_dumps, name_of, recording_at
from tflq.comparison.goldens.golden import Golden, parts_named
from tflq.comparison.inputs.prepare import PLAIN, InputPreparation
from tflq.comparison.inputs.read import InputSource, has_variables
from tflq.comparison.inspection.difference import difference, unequal
from tflq.comparison.results import CompareMode, Located
from tflq.comparison.verification.localization import Handled, Localizer, StepMemory, readable
from tflq.engine.api.many import Part, part_of, reads
from tflq.engine.interpreter import Plan, State, make_plan, run
from tflq.engine.interpreter.fusions import readers_left, unpackable_tensors
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.profiles import Profile
from tflq.errors import InputError, InputWarning, TflqError
from tflq.model.ir import GraphView, Model, Signed, signed, view
from tflq.model.storage.arrays import opened
from tflq.texts import Statement
from tflq.typing import Array

Bytes = NDArray[np.uint8]

#: Shared bytes must have at least this variety, so that they are not equal by chance.
_TELLING = 4
#: Memory planners align tensors to at least this many bytes (tflite-micro; LiteRT uses 64).
_ALIGNMENT = 16
#: Number of first bytes of a tensor that are searched in another, and of places whose whole overlap is compared.
_HEAD, _PLACES = 64, 16


def overwritten_by(
    model: Model, profile: Profile, dump: Dump, tensor: int, computed: Mapping[int, Array]
) -> int | None:
    """Return the later tensor whose bytes the dump holds in place of `tensor`'s; None if there is none.

    `computed` are values of the tensors computed before, and `tensor`'s own if it is known (a graph input's is not).
    """
    graph = view(model)
    makers = graph.last_writers
    mine, known = dump.tensors[tensor], computed.get(tensor)
    if tensor in graph.outputs or graph.tensors[tensor].is_variable or mine.dtype.hasobject:
        return None
    if known is None and _is_believed(model, dump, profile, tensor):
        return None
    suspect = _suspect(mine, known)
    last = _last_reader(graph, tensor)
    for other in sorted((t for t, i in makers.items() if i >= last and t != tensor), key=lambda t: makers[t]):
        in_place = makers[other] == last
        shared = _share(mine, dump.tensors[other], suspect, in_place) if other in dump.tensors else None
        if shared is not None and known is None and _is_open(graph, tensor, other, shared, mine.nbytes):
            continue
        if shared is not None and not _follows(model, dump, profile, tensor, other, shared, computed):
            return other
    return None


def _is_open(graph: GraphView, tensor: int, other: int, shared: slice, size: int) -> bool:
    """Return whether shared bytes of a graph input show nothing: few of them, or of an operator that moves elements."""
    maker = graph.maker(other)
    fact = None if maker is None else OPERATORS.get(maker.builtin)
    moves = fact is not None and fact.moves != () and maker is not None and tensor in maker.inputs
    return moves or 2 * (shared.stop - shared.start) < size


def _last_reader(graph: GraphView, tensor: int) -> int:
    """Return the operator from which on the tensor's memory may be reused.

    Its results may be written in place; those of later operators anywhere.
    """
    readers = graph.readers(tensor)
    return readers[-1].index if readers else graph.last_writers.get(tensor, -1) + 1


def _suspect(mine: Array, known: Array | None) -> NDArray[np.bool_]:
    """Return a mask of bytes that may be another tensor's: of elements that differ from the known ones, else all."""
    if known is None or known.shape != mine.shape or known.dtype != mine.dtype:
        return np.ones(mine.nbytes, bool)
    return np.repeat(unequal(known, mine).reshape(-1), mine.itemsize)


def _share(mine: Array, theirs: Array, suspect: NDArray[np.bool_], in_place: bool) -> slice | None:
    """Return the bytes of `theirs` that `mine` also has, overlapping as planners arrange them, if they are telling."""
    if theirs.dtype.hasobject:
        return None
    a, b = _bytes(mine), _bytes(theirs)
    shifts = (0,) if in_place else (*_places(a, b), *(-place for place in _places(b, a)))
    for shift in shifts:
        low, high = max(0, -shift), min(len(a), len(b) - shift)
        telling = len(np.unique(a[low:high][suspect[low:high]])) >= _TELLING
        if telling and np.array_equal(a[low:high], b[low + shift : high + shift]):
            return slice(low + shift, high + shift)
    return None


def _places(head: Bytes, whole: Bytes) -> list[int]:
    """Return the possible starts of one tensor inside another: its first bytes match there."""
    places = np.arange(0, len(whole), _ALIGNMENT)
    places = places[whole[places] == head[0]] if len(head) else places[:0]
    for step in range(1, min(_HEAD, len(head))):
        if not len(places):
            break
        beyond = places + step >= len(whole)
        places = places[beyond | (whole[np.where(beyond, 0, places + step)] == head[step])]
    return [int(place) for place in places[:_PLACES]]


def _bytes(value: Array) -> Bytes:
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def _is_believed(model: Model, dump: Dump, profile: Profile, tensor: int) -> bool:
    """Return whether a graph input's first reader reproduces at least half of the dump; if unknown, True."""
    reader = next(iter(view(model).readers(tensor)), None)
    computed = None if reader is None else _compute(model, profile, [reader.index], dump.tensors)
    if reader is None or computed is None:
        return True
    results = [t for t in reader.outputs if t in computed and t in dump.tensors]
    differences = [difference(dump.tensors[t], computed[t]) for t in results]
    differing = sum(d.elements if d.problem else d.differing for d in differences)
    return 2 * differing <= sum(d.elements for d in differences)


def _follows(
    model: Model, dump: Dump, profile: Profile, tensor: int, other: int, shared: slice, computed: Mapping[int, Array]
) -> bool:
    """Return whether the shared bytes of `other` follow from the dumped value of `tensor`, not from the known one."""
    graph = view(model)
    between = _between(graph, graph.last_writers.get(tensor, -1), other)
    if not any(tensor in graph.op(index).inputs for index in between):
        return False
    dumped = _bytes(dump.tensors[other])[shared]

    def gives(values: Mapping[int, Array]) -> bool | None:
        recomputed = _compute(model, profile, between, values)
        return None if recomputed is None else np.array_equal(_bytes(recomputed[other])[shared], dumped)

    values = {**dump.tensors, **computed}
    if gives({**values, tensor: dump.tensors[tensor]}) is False:
        return False
    return tensor not in computed or not gives(values)


def _compute(
    model: Model, profile: Profile, operators: Sequence[int], values: Mapping[int, Array]
) -> dict[int, Array] | None:
    """Return the results of some operators on `values`, by tensor index; None if one cannot run or lacks an input."""
    try:
        part = part_of(model, operators, values)
        return part.run(part.plan(profile))
    except TflqError:
        return None


def _between(graph: GraphView, maker: int, other: int) -> list[int]:
    """Return the operators after `maker` that `other` depends on."""
    needed, between = {other}, []
    for op in reversed(graph.ops[maker + 1 :]):
        if needed & set(op.outputs):
            between.append(op.index)
            needed |= {t for t in op.inputs if t >= 0}
    return between


#: Every operator of every sample.
BySample: TypeAlias = "tuple[tuple[Located, ...], ...]"


def localize(
    model: Model, dump: Dump, profile: Profile, mode: CompareMode = CompareMode.ISOLATED
) -> tuple[Located, ...]:
    """Compute every operator, end to end or on the dump's inputs if it has them, and compare."""
    return tuple(locate(model, dump, profile, mode))


def locate(model: Model, dump: Dump, profile: Profile, mode: CompareMode = CompareMode.ISOLATED) -> Iterator[Located]:
    """Localize an operator at a time."""
    return (row[0] for row in _localizer(model, profile, mode).operators((dump,)))


def localize_samples(
    model: Model, dumps: Sequence[Dump], profile: Profile, mode: CompareMode = CompareMode.ISOLATED
) -> BySample:
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
    graph, memory, samples = view(model), StepMemory(), list[tuple[Located, ...]]()
    localizer, kept = replace(localizer, handled=handled), dict[int, dict[object, Plan]]()
    for k, dump in enumerate(dumps):
        memory = memory if dump.continues else StepMemory()
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


def _localizer(model: Model, profile: Profile, mode: CompareMode) -> Localizer:
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


Source = str | os.PathLike[str] | Golden | Mapping[str, Array] | Mapping[int, Array] | Dump
#: The dumps of one signature.
OfSignature = tuple[Signed, tuple[Dump, ...]]


def dumps_by_signature(
    model: Model,
    dump: Source,
    sample: int | None = None,
    inputs: InputSource = None,
    signature: str | None = None,
    how: InputPreparation = PLAIN,
) -> list[OfSignature]:
    """Return the samples of a dump by signature: of all that it holds, or of one.

    A recording names its signatures. Any other dump is of the signatures whose tensors its entries name.

    Raises:
        InputError: The dump does not fit the model, or does not show which signature it is of.
        UnknownNameError: The model has no such signature.
    """
    parts = signed(model, signature)
    if len(parts) == 1 and not parts[0].name:
        return [(parts[0], _samples(model, dump, sample, inputs, how))]
    golden = None if isinstance(dump, (Dump, Mapping)) else recording_at(dump)
    if golden is not None and not isinstance(dump, (Dump, Mapping)):
        return _of_recording(model, golden, name_of(dump), parts, sample)
    chosen = parts if len(parts) == 1 else _named_parts(parts, dump)
    return [(part, _samples(part.model, dump, sample, inputs, how)) for part in chosen]


def only_dumps(
    model: Model,
    dump: Source,
    sample: int | None = None,
    inputs: InputSource = None,
    signature: str | None = None,
    how: InputPreparation = PLAIN,
) -> OfSignature:
    """Return the samples of a dump of one signature.

    Raises:
        InputError: It is of several: see dumps_by_signature.
    """
    found = dumps_by_signature(model, dump, sample, inputs, signature, how)
    if len(found) > 1:
        raise _ambiguous([part for part, _ in found], "the dump is of several signatures")
    return found[0]


def _samples(
    model: Model, dump: Source, sample: int | None, inputs: InputSource, how: InputPreparation
) -> tuple[Dump, ...]:
    if isinstance(dump, Dump):
        return (dump,)
    return (dump_of(model, dump),) if isinstance(dump, Mapping) else load_dumps(model, dump, sample, inputs, how)


def _of_recording(
    model: Model, golden: Golden, source: str, parts: Sequence[Signed], sample: int | None
) -> list[OfSignature]:
    every, found = signed(model), list[OfSignature]()
    own = [every[parts_named(every, signature)].name for signature, _ in golden.steps]
    for part in parts:
        numbers = [k for k, name in enumerate(own) if name == part.name]
        dumps = dumps_of_recording(part.model, golden.chosen(numbers), source)
        if sample is not None and not 0 <= sample < len(dumps):
            raise InputError(f"sample {sample}: {source} has {len(dumps)} samples of {part.name}")
        if dumps:
            found.append((part, dumps if sample is None else dumps[sample : sample + 1]))
    if not found:
        raise InputError("holds no sample", name=source, expected=f"samples of {', '.join(p.name for p in parts)}")
    return found


def _named_parts(parts: Sequence[Signed], dump: Source) -> list[Signed]:
    """Return the signatures of which entries name an input or a result."""
    if isinstance(dump, (Dump, Golden)):
        raise _ambiguous(parts, "a dump without names")
    entries = set(_entries(dump))
    found = [part for part in parts if entries & _names(part.model)]
    if not found:
        raise _ambiguous(parts, "no entry of the dump names a tensor of one signature only")
    return found


def _ambiguous(parts: Sequence[Signed], reason: str) -> InputError:
    names = ", ".join(part.name for part in parts)
    return InputError(f"{reason}: choose one with --signature (signature=)", expected=f"one of {names}", got=None)


def _entries(dump: Mapping[Any, Array] | str | os.PathLike[str]) -> Iterable[str]:
    """Return the names of a dump's entries, as far as its form has names."""
    if isinstance(dump, Mapping):
        return map(str, dump)
    place = Path(dump)
    if place.is_dir():
        return [file.stem for file in place.iterdir()]
    if place.suffix != ".npz" or not place.is_file():
        return []
    with opened(place) as archive:
        return [re.sub(r"^s\d+_", "", name) for name in archive]


def _names(model: Model) -> set[str]:
    """Return the names of inputs and results, also as files spell them."""
    graph = view(model)
    names = {graph.tensors[t].name or "" for t in (*graph.inputs, *graph.computed)} - {""}
    return {spelling for name in names for spelling in (name, re.sub(r"[^\w.-]", "_", name), re.sub(r"\W", "_", name))}
