"""Releases that agree on a model: every operator prepared under every release's profile. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tflq.comparison.inspection.equality import same, same_operator
from tflq.comparison.inspection.operators import prepare_alone
from tflq.display import display_by
from tflq.engine.api.files import Source
from tflq.engine.api.subject import ModelFacts, subject
from tflq.engine.interpreter.plan import Step
from tflq.engine.profiles import Profile, by_name
from tflq.engine.profiles.history import RELEASES, RESOLVERS
from tflq.errors import TflqError, UnknownNameError
from tflq.model.ir import Model, view
from tflq.model.ir.signatures import is_inner_call, place_of, root_subgraphs

__all__ = ["Agreement", "Agreements", "agreements"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Releases that give the same bits for every operator, the oldest first.

    `apart` are the operators for which the newest release can give other bits, including those that only one of the two
    takes.
    """

    resolver: str
    releases: tuple[str, ...]
    apart: tuple[int, ...]


@display_by("profiles.effects:agreements_card")
@dataclass(frozen=True, slots=True)
class Agreements:
    """All subgraphs of a model under every release from `since` on; for each resolver the newest come first.

    `operators` are names, and `places` their indices with those of their subgraphs.
    """

    model: ModelFacts
    since: str
    operators: tuple[str, ...]
    places: tuple[str, ...]
    agreements: tuple[Agreement, ...]


def agreements(model: Source | Model, since: str, signature: str | None = None) -> Agreements:
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
) -> Iterator[Agreement]:
    """Yield groups of releases that prepare all operators alike, the newest first."""
    profiles = {release: profile for release in releases if (profile := _profile(release, resolver)) is not None}
    known = {p.name: _of_every_operator(graphs, p, skipped) for p in dict.fromkeys(profiles.values())}
    groups: list[tuple[tuple[Step | None, ...], list[str]]] = []
    for release in reversed(profiles):
        mine = known[profiles[release].name]
        group = next((members for theirs, members in groups if not _apart(theirs, mine)), None)
        if group is None:
            groups.append((mine, [release]))
        else:
            group.append(release)
    for theirs, members in groups:
        yield Agreement(resolver, tuple(reversed(members)), _apart(groups[0][0], theirs))


def _apart(some: tuple[Step | None, ...], others: tuple[Step | None, ...]) -> tuple[int, ...]:
    """Return the operators that are not prepared alike."""
    return tuple(i for i, (one, two) in enumerate(zip(some, others, strict=True)) if not _alike(one, two))


def _alike(one: Step | None, two: Step | None) -> bool:
    """Return whether an operator has the same kernel and constants, or is refused both times.

    If it is bound at run time, only its kernel is known.
    """
    if one is None or two is None:
        return one is two
    if one.prepared is None or two.prepared is None:
        return one.prepared is two.prepared and same(one.kernel.prepare, two.kernel.prepare)
    return same_operator(one.prepared, two.prepared)


def _profile(release: str, resolver: str) -> Profile | None:
    """Return the profile, or None if the release's resolver has no profile of its own."""
    try:
        return by_name(f"{release}-{resolver}")
    except UnknownNameError:
        return None


def _of_every_operator(
    graphs: Mapping[int, Model], profile: Profile, skipped: frozenset[str]
) -> tuple[Step | None, ...]:
    """Return every operator as the profile prepares it; None if it refuses it, or if it is skipped."""
    return tuple(
        None if place_of(number, op.index) in skipped else _prepare(part, op.index, profile)
        for number, part in graphs.items()
        for op in view(part).ops
    )


def _prepare(model: Model, index: int, profile: Profile) -> Step | None:
    try:
        return prepare_alone(model, index, profile)
    except TflqError:
        return None
