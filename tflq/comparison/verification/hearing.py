"""Systems heard on one model: groups of equal bits, and the operators at which they part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tflq.comparison.inspection.difference import Difference, difference, with_one_nan
from tflq.comparison.verification.results import InputFacts
from tflq.display import display_by
from tflq.engine.api.subject import ModelFacts
from tflq.model.ir import Model, view
from tflq.model.storage.arrays import digest
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
class Group:
    """Systems with the same output bits. `leaves` is the first parting from the reference; None: it is in the group.

    `difference` is that of the model's outputs from the reference's, in the first sample and output that differ.
    """

    systems: tuple[str, ...]
    has_reference: bool
    leaves: Parting | None
    difference: Difference | None


@display_by("court:court_report")
@dataclass(frozen=True, slots=True)
class Hearing:
    """A model under several systems, on the same inputs.

    `groups` begin with the reference's, then come those of most systems. `failed` are systems that refuse the model or
    are not installed, with the reason; `loose` are profiles that do not promise every bit of the outputs.
    """

    model: ModelFacts
    inputs: InputFacts
    samples: int
    reference: str
    groups: tuple[Group, ...]
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
                plain = with_one_nan(value)
                found[index] = digest(plain)
                self.arrays.setdefault(found[index], plain)
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
) -> Iterator[Group]:
    """Yield the groups of systems with the same outputs: the reference's first, then those of most systems."""
    outputs = view(model).outputs
    groups: dict[tuple[str, ...] | None, list[str]] = {}
    for name, tensors in ran.items():
        groups.setdefault(_read_bits(tensors, outputs), []).append(name)
    for names in sorted(groups.values(), key=lambda names: (reference not in names, -len(names))):
        if reference in names:
            yield Group(tuple(names), True, None, None)
            continue
        leaves = next((parting for parting in partings if _separates(parting, reference, names[0])), None)
        yield Group(tuple(names), False, leaves, pool.difference(ran[reference], ran[names[0]], outputs))


def _separates(parting: Parting, one: str, other: str) -> bool:
    """Return whether two systems are in different parts."""
    sides = [next((k for k, part in enumerate(parting.parts) if name in part), None) for name in (one, other)]
    return None not in sides and sides[0] != sides[1]
