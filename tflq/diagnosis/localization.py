"""Locate differences between a dump and a profile: compute every operator and compare it with the dump."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from tflq.comparison.verification.compared import readable
from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.localization import Localizer
from tflq.comparison.verification.results import Located, Mode
from tflq.diagnosis.reuse import overwritten_by
from tflq.engine.api.part import Part, part_of, reads
from tflq.engine.interpreter.unpacking import readers_left, unpackable_tensors
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, view
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
    return tuple(zip(*_localizer(model, profile, mode).operators(dumps), strict=True)) or ((),) * len(dumps)


def _localizer(model: Model, profile: Profile, mode: Mode) -> Localizer:
    overwritten = partial(overwritten_by, model, profile)
    return Localizer(model, profile, mode, overwritten=overwritten, reads_constants=False, carries=True)


def most_telling(by_sample: Sequence[Sequence[Located]], index: int) -> int:
    """Return the sample in which most elements of operator `index` differ."""
    counts = [sum(d.differing for d in sample[index].differences.values()) for sample in by_sample]
    return counts.index(max(counts))


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
    return replace(part_of(model, (index,), known).fixing(folded), got=got, variables=dump.variables)


def _compute_before(model: Model, dump: Dump, before: int, profile: Profile) -> Mapping[int, Array]:
    """Return the results of all operators before one, on the dump's own inputs if it has them."""
    graph = view(model)
    values: dict[int, Array] = {}
    for op in graph.ops[:before]:
        try:
            part = part_of(model, (op.index,), {**values, **readable(dump, graph.last_writers, op.index)})
            computed = part.run(part.plan(profile))
        except TflqError:
            continue
        values.update({t: computed[t] for t in op.writes if t in computed})
    return values
