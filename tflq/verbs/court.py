"""`court`: every profile and installed runtime on one model: who gives the same bits, and who parts from whom where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tflq.comparison.inspection.difference import Difference, difference, with_one_nan
from tflq.comparison.verification.feeding import Feed, Feeds, make_feeds
from tflq.comparison.verification.observation import observe
from tflq.comparison.verification.preparation import preparation
from tflq.comparison.verification.results import InputFacts
from tflq.comparison.verification.signed import runnable
from tflq.display import displayed_by
from tflq.engine.api.files import Source
from tflq.engine.api.subject import ModelFacts, Subject, subject
from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter import run as run_plan
from tflq.engine.kernels.exactness import EXACT
from tflq.engine.profiles import PROFILES
from tflq.engine.profiles import by_name as profile_by_name
from tflq.engine.runtimes import FOREIGN, RUNTIMES, named
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.errors import OptionError, RuntimeMissing, TflqError, UnsupportedError, brief
from tflq.model.ir import Model, Signed, signed, view
from tflq.model.storage.arrays import digest
from tflq.progress import Progress, silent
from tflq.typing import Array

#: The system that others are described against if it takes part: LiteRT's reference kernels.
REFERENCE = "litert-ref"
_RUNTIME = "runtime:"
#: Digests of one system's tensors, by sample and tensor index.
Tensors = tuple[Mapping[int, str], ...]


@dataclass(frozen=True, slots=True)
class Parting:
    """An operator at which systems with the same inputs give other outputs: the parts, that of most systems first.

    `differences` are those of each part from the first one, in the first sample and output that differ; None for the
    first part itself. The order is no judgement.
    """

    index: int
    op: str
    parts: tuple[tuple[str, ...], ...]
    differences: tuple[Difference | None, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Systems with the same output bits. `leaves` is the first parting from the reference; None: it is in the group.

    `difference` is that of the model's outputs from the reference's, in the first sample and output that differ.
    """

    systems: tuple[str, ...]
    has_reference: bool
    leaves: Parting | None
    difference: Difference | None


@displayed_by("court:court_report")
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
        return tuple(n for n, k in places.items() if places.get(n.removeprefix(_RUNTIME), k) != k)

    @property
    def verdict(self) -> str:
        """The verdict, one of exits.VERDICTS."""
        if self.systems < 2:
            return "nothing compared"
        return "same" if len(self.groups) == 1 else "differs"


def court(
    model: Source | Model,
    systems: Sequence[str] = (),
    inputs: Feed = None,
    *,
    samples: int = 1,
    seed: int = 0,
    signature: str | None = None,
    python: str | None = None,
    progress: Progress = silent,
) -> Hearing:
    """Run a model under many systems on the same inputs; group them by output bits, and find where they part.

    Systems part at an operator if they have the same inputs there and give other outputs. The number of systems in a
    group decides nothing: the reference, to which groups are compared, is `litert-ref` if it takes part.

    Args:
        model: A path, the bytes of a file, or a Model.
        systems: Profiles, and runtimes or foreign systems as "runtime:NAME" or by a name that no profile has. Empty:
            all profiles, and the runtimes that are installed here.
        inputs: The source of inputs, as for `verify`. None: generated from `seed`.
        samples: The number of samples to generate.
        seed: The seed of generated inputs.
        signature: The signature to run, if the model has several.
        python: The Python in which runtimes are installed, if not this one.
        progress: Called as progress(what, done, total).

    Raises:
        InputError: The inputs do not fit the model.
        OptionError: The model has several signatures, and none is named.
        UnknownNameError: There is no profile, runtime or signature of that name.
        UnsupportedError: The inputs are steps that depend on each other.

    Example:
        >>> model = "golden/models/digits_mobilenet_int8.tflite"
        >>> found = tflq.court(model, ["litert-ref", "litert-opt", "tflm-cmsis-nn-single"], samples=8)
        >>> found.groups[0].systems[0], len(found.groups) > 1
        ('litert-ref', True)
    """
    target = subject(model)
    parts = signed(target.model, signature)
    if len(parts) != 1:
        raise OptionError(f"the model has {len(parts)} signatures: name one of {', '.join(p.name for p in parts)}")
    names = [_resolve(name) for name in systems] or _list_present(python)
    feeds = make_feeds(parts, inputs, samples, seed, preparation(None, None))
    if any(fed.carried or fed.continues for fed in feeds.steps):
        raise UnsupportedError("court of a model with state", reason="its steps depend on each other: use tflq session")
    ran: dict[str, Tensors] = {}
    pool = _Pool()
    failed: dict[str, str] = {}
    loose: list[str] = []
    for number, name in enumerate(dict.fromkeys(names)):
        progress("running", number, len(names))
        try:
            if name.startswith(_RUNTIME):
                ran[name] = _run_runtime(target, parts, feeds, name, python, pool)
            else:
                ran[name], is_loose = _run_profile(parts[0].model, feeds, name, pool)
                loose += [name] * is_loose
        except RuntimeMissing as error:
            failed |= {name: brief(error)} if systems else {}
        except TflqError as error:
            failed[name] = brief(error)
    reference = REFERENCE if REFERENCE in ran else next(iter(ran), "")
    partings = tuple(_find_partings(parts[0].model, ran, pool))
    groups = tuple(_find_groups(parts[0].model, ran, reference, partings, pool))
    return Hearing(target.facts, feeds.facts, len(feeds.steps), reference, groups, partings, failed, tuple(loose))


def _resolve(name: str) -> str:
    """Return the name of a system: that of a profile, or a runtime's after `runtime:`."""
    if not name.lower().startswith(_RUNTIME):
        try:
            return profile_by_name(name).name
        except TflqError:
            if name.endswith((".yaml", ".yml")):
                raise
    return _RUNTIME + named(name).name


def _list_present(python: str | None) -> list[str]:
    """Return all profiles, and the runtimes that are installed here or may be in the named Python."""
    runtimes = [runtime.name for runtime in (*RUNTIMES.values(), *FOREIGN.values()) if not runtime.is_absent]
    if python is not None:
        runtimes = list(RUNTIMES)
    return [*PROFILES, *(_RUNTIME + name for name in runtimes)]


class _Pool:
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


def _run_profile(model: Model, feeds: Feeds, name: str, pool: _Pool) -> tuple[Tensors, bool]:
    """Return a profile's tensors, and whether it promises less than every bit of an output."""
    plan = make_plan(model, profile_by_name(name))
    found, is_loose = [], False
    for fed in feeds.steps:
        trace = run_plan(plan, dict(zip(plan.inputs, fed.sample, strict=True)), keep_all=True)
        is_loose |= any(trace.promise(tensor) != EXACT for tensor in plan.outputs)
        found.append(pool.put(trace.values))
    return tuple(found), is_loose


def _run_runtime(
    target: Subject, parts: Sequence[Signed], feeds: Feeds, name: str, python: str | None, pool: _Pool
) -> Tensors:
    """Return a runtime's tensors; outputs are those of the unchanged model."""
    runtime = runtime_by_name(name.removeprefix(_RUNTIME), python=python)
    runnable(parts, runtime)
    golden = observe(target, runtime, feeds, all_tensors=True)
    outputs = view(parts[0].model).outputs
    return tuple(pool.put({**one.tensors, **dict(zip(outputs, one.outputs))}) for one in golden.observations)  # noqa: B905


def _read_bits(tensors: Tensors, indices: Sequence[int]) -> tuple[str, ...] | None:
    """Return digests of some tensors in all samples; None if the system does not give all of them."""
    values = [sample.get(index) for sample in tensors for index in indices]
    return None if None in values else tuple(value for value in values if value is not None)


def _find_partings(model: Model, ran: Mapping[str, Tensors], pool: _Pool) -> Iterator[Parting]:
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


def _find_groups(
    model: Model, ran: Mapping[str, Tensors], reference: str, partings: Sequence[Parting], pool: _Pool
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
