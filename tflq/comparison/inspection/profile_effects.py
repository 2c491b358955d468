"""The effect of other profiles and releases on a model's operators.

The effect of other profiles on a model's operators, from their prepared constants. Nothing is run.

Equal constants under the same evaluation give equal bits; if they differ, the bits can differ.

Releases that agree on a model: every operator prepared under every release's profile. Nothing is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from tflq.comparison.inspection.prepared import named_parts
from tflq.comparison.inspection.preparing import KernelRows, Preparation, Preparations
from tflq.comparison.inspection.profile_pairs import unwrapped
from tflq.engine.api.files import ModelFacts, Source, subject
from tflq.engine.numerics.codes import Clamp, NumberClamp, ZeroPoints
from tflq.engine.numerics.multiplier import Multiplier, ShortMultiplier
from tflq.engine.numerics.stages import OutputStage
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.engine.profiles.history import RELEASES, RESOLVERS
from tflq.errors import TflqError, UnknownNameError, brief
from tflq.model.ir import Model, view
from tflq.model.ir.signatures import is_inner_call, place_of, root_subgraphs, roots
from tflq.texts import Tabular, display_by

__all__ = [
    "Agreements",
    "Effects",
    "OperatorEffects",
    "ProfileEffect",
    "ReleaseAgreement",
    "profile_effects",
    "profile_releases",
]


@dataclass(frozen=True, slots=True)
class ProfileEffect:
    """A profile under which an operator's preparation differs, and the first constant that differs.

    `field` is "kernel" if the evaluation differs, and "refused" if only one of the two takes the operator.
    """

    profile: str
    field: str
    base: str
    here: str


@dataclass(frozen=True, slots=True)
class OperatorEffects:
    """One operator. `effects` is empty if all profiles give the same bits.

    `proved` are profiles that prepare it differently and give the same bits for every input.
    """

    index: int
    op: str
    types: str
    effects: tuple[ProfileEffect, ...]
    proved: tuple[str, ...] = ()
    subgraph: int = 0
    refused: str = ""  # why the base refuses it, in a subgraph that callers run; `effects` has those that take it

    @property
    def place(self) -> str:
        """Its index, after that of its subgraph if this is not the first."""
        return place_of(self.subgraph, self.index)


@display_by("profiles:effects_report", "effects_document", "operators")
@dataclass(frozen=True, slots=True)
class Effects(Tabular):
    """All subgraphs of a model, or those of a signature, under several profiles."""

    model: ModelFacts
    base: str
    profiles: tuple[str, ...]
    operators: tuple[OperatorEffects, ...]

    @property
    def refused(self) -> tuple[OperatorEffects, ...]:
        """The operators that the base refuses."""
        return tuple(operator for operator in self.operators if operator.refused)


def profile_effects(
    model: Source | Model,
    base: str | Profile = "litert-ref",
    others: Sequence[str | Profile] | None = None,
    signature: str | None = None,
) -> Effects:
    """Prepare every operator under every profile by itself, and find those that can give other bits than `base`.

    Nothing is run. `others` are all profiles if none are given; `signature` leaves out subgraphs that it does not run.

    Raises:
        UnknownNameError: There is no profile or signature of that name.

    Example:
        >>> found = tflq.profile_effects("golden/models/digits_mobilenet_int8.tflite", "litert-ref", ["tflm"])
        >>> [operator.index for operator in found.operators if operator.effects]
        [18]
    """
    base = by_name(base)
    chosen = [p for name, p in PROFILES.items() if name != base.name] if others is None else [*map(by_name, others)]
    target = subject(model)
    graphs = root_subgraphs(target.model, signature)
    operators, rows = [], KernelRows()
    begun = {root.subgraph for root in roots(target.model)}  # shapes of others come from their callers
    for number, op in ((number, op) for number, part in graphs for op in view(part).ops):
        part = op.graph.model
        effects: tuple[ProfileEffect, ...] = ()
        refused = ""
        if not is_inner_call(target.model, number, op.record):
            alone = Preparations(part, op.index, (base, *chosen), rows)
            reference = _bind(alone, base)
            refused = reference if isinstance(reference, str) and number in begun else ""
            effects = tuple(_effects(alone, reference, chosen))
        names = [
            " ".join("none" if spec is None else getattr(spec.type, "label", "?") for spec in specs)
            for specs in (op.input_specs, op.output_specs)
        ]
        types = " -> ".join(names)
        operators.append(OperatorEffects(op.index, op.name, types, effects, subgraph=number, refused=refused))
    return Effects(target.facts, base.name, tuple(p.name for p in chosen), tuple(operators))


def _effects(alone: Preparations, reference: Preparation | str, others: Sequence[Profile]) -> Iterator[ProfileEffect]:
    constants = cache(lambda: {} if isinstance(reference, str) else _constants(reference))
    known: dict[int, tuple[Preparation | str, tuple[str, str, str] | None]] = {}  # by identity, kept by the value
    for profile in others:
        here = _bind(alone, profile)
        if isinstance(reference, str) or isinstance(here, str):
            if isinstance(reference, str) != isinstance(here, str):
                reasons = (one if isinstance(one, str) else "" for one in (reference, here))
                yield ProfileEffect(profile.name, "refused", *reasons)
            continue
        if id(here) not in known:
            is_same = alone.kind(reference) == alone.kind(here)
            known[id(here)] = here, None if is_same else _difference(constants(), _constants(here))
        found = known[id(here)][1]
        if found:
            yield ProfileEffect(profile.name, *found)


def _difference(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return the first of unequal constants: its name and both values."""
    for name in (*first, *(name for name in second if name not in first)):
        if first.get(name) != second.get(name):
            return name, first.get(name, "none"), second.get(name, "none")
    return None if len(first) == len(second) == 1 else ("kernel", first["kernel"], second["kernel"])


def _bind(alone: Preparations, profile: Profile) -> Preparation | str:
    """Return the operator as the profile prepares it; or the reason why it is refused."""
    try:
        return alone.under(profile)
    except TflqError as error:
        return brief(error).split(": ", 1)[-1]


def _constants(made: Preparation) -> dict[str, str]:
    """Return kernel, shapes and constants of an operator as text, by name."""
    if made.prepared is None:  # bound at run time: only its kernel is known
        return {"kernel": _name(made.row.prepare)}
    found = {"kernel": _name(made.prepared.eval), "shapes": str(made.prepared.shapes)}
    _add_leaves(found, "", made.prepared.data)
    return found


def _name(function: Callable[..., Any]) -> str:
    whole = unwrapped(function)
    return f"{whole.__module__.removeprefix('tflq.engine.kernels.')}.{whole.__qualname__}"


def _add_leaves(found: dict[str, str], name: str, value: Any) -> None:
    """Add every constant below `value` by name, as text: stages by class and multiplier, arrays by digest."""
    if isinstance(value, (int, str)):
        found[name] = str(value)
    elif isinstance(value, np.ndarray):
        found[name] = _array(value)
    elif isinstance(value, ZeroPoints):
        found[name] = _array(value.codes)
    elif isinstance(value, OutputStage):
        found[name] = _stage(value)
    elif isinstance(value, (Clamp, NumberClamp, Multiplier, ShortMultiplier)):
        owner, dot, field_name = name.rpartition(".")
        found.update((f"{owner}{dot}{part}", str(number)) for part, number in named_parts(field_name, value))
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            _add_leaves(found, f"{name}[{position}]", item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            _add_leaves(found, f"{name}.{field.name}" if name else field.name, getattr(value, field.name))
    elif isinstance(value, dict):
        for key, item in value.items():
            _add_leaves(found, f"{name}[{key}]", item)
    elif callable(value) and not isinstance(value, type):
        found[name] = _name(value) if hasattr(unwrapped(value), "__qualname__") else type(value).__name__
    else:
        found[name] = str(value)


def _stage(stage: Any) -> str:
    parts = [f"{type(stage).__name__}"]
    for name in ("mantissa", "shift"):
        values = getattr(stage, name, None)
        if values is not None:
            parts.append(f"{name} {_short(values)}")
    if len(parts) == 1:
        parts.append(f"x {_short(stage.real)}")
    parts += [f"{f.name} {_stage(getattr(stage, f.name))}" for f in _inner_stages(stage)]
    return " ".join(parts)


def _inner_stages(stage: Any) -> list[Any]:
    if not is_dataclass(stage):
        return []
    return [f for f in fields(stage) if isinstance(getattr(stage, f.name), OutputStage)]


def _short(values: Any) -> str:
    entries = np.ravel(values)
    if entries.size and bool(np.all(entries == entries[0])):
        return str(entries[0])
    return _array(entries)


def _array(values: Any) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:12]
    return f"{values.dtype}{list(values.shape)} #{digest}"


@dataclass(frozen=True, slots=True)
class ReleaseAgreement:
    """Releases that give the same bits for every operator, the oldest first.

    `apart` are the operators for which the newest release can give other bits, including those that only one of the two
    takes.
    """

    resolver: str
    releases: tuple[str, ...]
    apart: tuple[int, ...]


@display_by("profiles:agreements_card", "agreements_document", "agreements")
@dataclass(frozen=True, slots=True)
class Agreements(Tabular):
    """All subgraphs of a model under every release from `since` on; for each resolver the newest come first.

    `operators` are names, and `places` their indices with those of their subgraphs.
    """

    model: ModelFacts
    since: str
    operators: tuple[str, ...]
    places: tuple[str, ...]
    agreements: tuple[ReleaseAgreement, ...]


def profile_releases(model: Source | Model, since: str, signature: str | None = None) -> Agreements:
    """Group the releases from `since` on, such as `tflite-2.7` or `2.7`, by their results for a model's operators.

    Raises:
        UnknownNameError: That release has no profile.

    Example:
        >>> found = tflq.profile_releases("golden/models/digits_mobilenet_int8.tflite", "2.14")
        >>> len(found.agreements) > 1
        True
    """
    target = subject(model)
    chosen = RELEASES[RELEASES.index(_release(since)) :]
    graphs = dict(root_subgraphs(target.model, signature))
    operators = [(place_of(number, op.index), op.name) for number, part in graphs.items() for op in view(part).ops]
    places, names = (tuple(column) for column in zip(*operators, strict=True)) if operators else ((), ())
    skipped = frozenset(
        place_of(number, op.index)
        for number, part in graphs.items()
        for op in view(part).ops
        if is_inner_call(target.model, number, op.record)
    )
    found = (group for resolver in RESOLVERS for group in _groups(graphs, chosen, resolver, skipped))
    return Agreements(target.facts, chosen[0], names, places, tuple(found))


def _release(name: str) -> str:
    """Return the release with that name or version."""
    for release in RELEASES:
        if name in (release, release.partition("-")[2]):
            return release
    raise UnknownNameError("release", name, RELEASES)


def _groups(
    graphs: Mapping[int, Model], releases: tuple[str, ...], resolver: str, skipped: frozenset[str]
) -> Iterator[ReleaseAgreement]:
    """Yield groups of releases that prepare all operators alike, the newest first."""
    profiles = {release: profile for release in releases if (profile := _profile(release, resolver)) is not None}
    rows, distinct = KernelRows(), tuple(dict.fromkeys(profiles.values()))
    kinds: dict[str, list[int | None]] = {profile.name: [] for profile in distinct}  # of all operators, by profile
    for number, part in graphs.items():
        for op in view(part).ops:
            alone = Preparations(part, op.index, distinct, rows)
            is_skipped = place_of(number, op.index) in skipped
            for profile in distinct:
                kinds[profile.name].append(None if is_skipped else alone.kind_under(profile))
    groups: dict[tuple[int | None, ...], list[str]] = {}
    for release in reversed(profiles):
        groups.setdefault(tuple(kinds[profiles[release].name]), []).append(release)
    newest = next(iter(groups), ())
    for theirs, members in groups.items():
        apart = tuple(i for i, (one, two) in enumerate(zip(newest, theirs, strict=True)) if one != two)
        yield ReleaseAgreement(resolver, tuple(reversed(members)), apart)


def _profile(release: str, resolver: str) -> Profile | None:
    """Return the profile, or None if the release's resolver has no profile of its own."""
    try:
        return by_name(f"{release}-{resolver}")
    except UnknownNameError:
        return None
