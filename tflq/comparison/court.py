"""Systems heard on one model: groups of equal bits, partings, and the formula.

Judge by formula which of several outputs of an operator is wrong: no number of systems decides it.

The formula is that of the 8-bit quantization specification: codes become reals, the operator is computed in float32,
and the result is rounded to a code once. Integer kernels round more often, so that a distance of one code is allowed;
a kernel that lies farther off computes something else. Where the reference kernel itself lies farther off, as those of
approximated functions do, the formula decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.comparison.inspection.difference import Difference, difference, digest_of
from tflq.comparison.results import InputFacts
from tflq.engine.api.files import ModelFacts
from tflq.engine.api.many import part_of
from tflq.engine.profiles import by_name
from tflq.engine.profiles.file import with_rows
from tflq.errors import TflqError
from tflq.model.ir import Model, view
from tflq.texts import Tabular, display_by
from tflq.typing import Array

#: How the names of runtimes begin.
RUNTIME = "runtime:"
#: Digests of one system's tensors, by sample and tensor index.
Tensors = tuple[Mapping[int, str], ...]


@dataclass(frozen=True, slots=True)
class Ruling:
    """A judgement of a parting by the operator's formula, in one sample.

    `distances` are the largest distances of each part from the formula's codes; None: it gives no such output.
    `at_fault` are the parts, by their place, whose distance no rounding explains, if another part has none; `reason`
    is one sentence.
    """

    distances: tuple[int | None, ...]
    at_fault: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Parting:
    """An operator at which systems with the same inputs give other outputs: the parts, that of most systems first.

    `differences` are those of each part from the first one, in the first sample and output that differ; None for the
    first part itself. The order is no judgement; `ruling` is one.
    """

    index: int
    op: str
    parts: tuple[tuple[str, ...], ...]
    differences: tuple[Difference | None, ...]
    ruling: Ruling | None = None


@dataclass(frozen=True, slots=True)
class SystemGroup:
    """Systems with the same output bits. `leaves` is the first parting from the reference; None: it is in the group.

    `difference` is that of the model's outputs from the reference's, in the first sample and output that differ.
    """

    systems: tuple[str, ...]
    has_reference: bool
    leaves: Parting | None
    difference: Difference | None


@display_by("court:court_report", "court_document", "groups")
@dataclass(frozen=True, slots=True)
class Hearing(Tabular):
    """A model under several systems, on the same inputs.

    `groups` begin with the reference's, then come those of most systems. `failed` are systems that refuse the model or
    are not installed, with the reason; `loose` are profiles that do not promise every bit of the outputs.
    """

    model: ModelFacts
    inputs: InputFacts
    samples: int
    reference: str
    groups: tuple[SystemGroup, ...]
    partings: tuple[Parting, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    loose: tuple[str, ...] = ()

    @property
    def systems(self) -> int:
        """The number of systems that ran the model."""
        return sum(len(group.systems) for group in self.groups)

    @property
    def alone(self) -> tuple[str, ...]:
        """Systems whose outputs no other system gives; none if there are only two systems."""
        return tuple(g.systems[0] for g in self.groups if len(g.systems) == 1) if self.systems > 2 else ()

    @property
    def apart_from_profile(self) -> tuple[str, ...]:
        """Runtimes whose outputs are not those of the profile of their name, although both ran."""
        places = {name: k for k, group in enumerate(self.groups) for name in group.systems}
        return tuple(n for n, k in places.items() if places.get(n.removeprefix(RUNTIME), k) != k)

    @property
    def verdict(self) -> str:
        """The verdict, one of exits.VERDICTS."""
        if self.systems < 2:
            return "nothing compared"
        return "same" if len(self.groups) == 1 else "differs"


class Pool:
    """Arrays by digest, each once: most systems give the same bits."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def put(self, values: Mapping[int, Array | None]) -> dict[int, str]:
        """Keep the arrays that there are; return their digests."""
        found = {}
        for index, value in values.items():
            if value is not None:
                found[index] = digest_of([value]).hex()
                self.arrays.setdefault(found[index], value)
        return found

    def difference(self, first: Tensors, second: Tensors, indices: Sequence[int]) -> Difference | None:
        """Return the difference of the first sample and tensor that differ; None if all bits are equal."""
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            for index in indices:
                a, b = one.get(index), other.get(index)
                if a is not None and b is not None and a != b:
                    return difference(self.arrays[a], self.arrays[b], number)
        return None


def _read_bits(tensors: Tensors, indices: Sequence[int]) -> tuple[str, ...] | None:
    """Return digests of some tensors in all samples; None if the system does not give all of them."""
    values = [sample.get(index) for sample in tensors for index in indices]
    return None if None in values else tuple(value for value in values if value is not None)


def find_partings(model: Model, ran: Mapping[str, Tensors], pool: Pool) -> Iterator[Parting]:
    """Yield the operators at which systems with the same inputs part, in the order of the model."""
    graph = view(model)
    made = {tensor for op in graph.ops for tensor in op.record.outputs}
    for op in graph.ops:
        given = [tensor for tensor in op.record.inputs if tensor in made]
        outputs = [tensor for tensor in op.record.outputs if tensor >= 0]
        classes: dict[tuple[str, ...], dict[tuple[str, ...], list[str]]] = {}
        for name, tensors in ran.items():
            before, after = _read_bits(tensors, given), _read_bits(tensors, outputs)
            if before is not None and after is not None:
                classes.setdefault(before, {}).setdefault(after, []).append(name)
        for parts in classes.values():
            if len(parts) > 1:
                ordered = sorted(map(tuple, parts.values()), key=lambda part: -len(part))
                first = ran[ordered[0][0]]
                apart = [None, *(pool.difference(first, ran[part[0]], outputs) for part in ordered[1:])]
                yield Parting(op.index, op.name, tuple(ordered), tuple(apart))


def find_groups(
    model: Model, ran: Mapping[str, Tensors], reference: str, partings: Sequence[Parting], pool: Pool
) -> Iterator[SystemGroup]:
    """Yield the groups of systems with the same outputs: the reference's first, then those of most systems."""
    outputs = view(model).outputs
    groups: dict[tuple[str, ...] | None, list[str]] = {}
    for name, tensors in ran.items():
        groups.setdefault(_read_bits(tensors, outputs), []).append(name)
    for names in sorted(groups.values(), key=lambda names: (reference not in names, -len(names))):
        if reference in names:
            yield SystemGroup(tuple(names), True, None, None)
            continue
        leaves = next((parting for parting in partings if _separates(parting, reference, names[0])), None)
        yield SystemGroup(tuple(names), False, leaves, pool.difference(ran[reference], ran[names[0]], outputs))


def _separates(parting: Parting, one: str, other: str) -> bool:
    """Return whether two systems are in different parts."""
    sides = [next((k for k, part in enumerate(parting.parts) if name in part), None) for name in (one, other)]
    return None not in sides and sides[0] != sides[1]


#: Codes by which a kernel may differ from the formula: one for each further rounding that the specification allows.
ALLOWED = 1
#: A system that computes TOSA's formulas, which is quoted beside the formula if it takes part.
_TOSA = f"{RUNTIME}tosa-reference"


def judge(
    model: Model, parting: Parting, ran: Mapping[str, Tensors], pool: Pool, given: Sequence[Mapping[int, Array]]
) -> Parting:
    """Return the parting with its ruling; without one if no formula can be computed.

    Args:
        model: The model of one subgraph.
        parting: Where systems part.
        ran: The tensors of all systems.
        pool: Their arrays.
        given: The model's inputs by sample and tensor index.
    """
    op, first = view(model).op(parting.index), ran[parting.parts[0][0]]
    (output, *others) = op.record.outputs
    sides = [ran[part[0]] for part in parting.parts]
    sample = next((k for k in range(len(given)) if len({side[k].get(output) for side in sides}) > 1), None)
    if others or sample is None:
        return parting
    values = {**{t: pool.arrays[key] for t, key in first[sample].items()}, **given[sample]}
    made = [pool.arrays.get(side[sample].get(output, "")) for side in sides]
    if any(value is None or value.dtype.kind not in "iu" for value in made):
        return parting
    try:
        reference = by_name("litert-ref")
        formula = with_rows(reference, [{"op": op.name, "floats": {}}])
        part = part_of(model, [parting.index], values)
        right, own = (part.run(part.plan(profile))[output].astype(np.int64) for profile in (formula, reference))
    except TflqError:
        return parting
    distances = tuple(_distance(value, right) for value in made)
    approximate = _distance(own, right)
    if approximate is None or approximate > ALLOWED:
        reason = f"the reference kernel itself is {approximate} codes off: it does not decide"
        return replace(parting, ruling=Ruling(distances, (), reason))
    return replace(parting, ruling=_ruling(parting, distances))


def _distance(value: Array | None, right: Array) -> int | None:
    if value is None or value.shape != right.shape:
        return None
    return int(np.abs(value.astype(np.int64) - right).max(initial=0))


def _ruling(parting: Parting, distances: Sequence[int | None]) -> Ruling:
    """Return the ruling for distances from the formula."""
    beside = tuple(k for k, distance in enumerate(distances) if distance is None or distance > ALLOWED)
    near = [k for k in range(len(distances)) if k not in beside]
    if beside and near:
        named = "; ".join(f"{parting.parts[k][0]} is up to {distances[k]} codes off" for k in beside)
        reason = f"{named}, the others {ALLOWED}"
    elif near:
        beside, reason = (), f"all within {ALLOWED} code: they round differently, none is wrong"
    else:
        beside, reason = (), "all are farther off than rounding explains: it does not decide"
    tosa = next((part[0] for part in parting.parts if _TOSA in part and len(part) > 1), "")
    return Ruling(
        tuple(distances), beside, f"{reason}; the TOSA reference model gives the bits of {tosa}" if tosa else reason
    )
