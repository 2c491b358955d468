"""The runtimes that a set of profiles describes: packages, ranges of versions, resolvers, classes of processors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tflq.engine.profiles import Profile


@dataclass(frozen=True, slots=True)
class Compatible:
    """Runtimes of one package and resolver. `versions` are those that were compared with the dump, in order."""

    package: str
    resolver: str
    versions: tuple[str, ...]
    cpus: tuple[str, ...]


def compatible(profiles: Iterable[Profile]) -> tuple[Compatible, ...]:
    """Return profiles' runtimes, in the order of the profiles; variants that need a build option are left out."""
    groups: dict[tuple[str, str], list[Profile]] = {}
    for profile in profiles:
        if "+" not in profile.name and profile.source.package:
            groups.setdefault((profile.source.package, profile.source.resolver), []).append(profile)
    return tuple(
        Compatible(
            package,
            resolver,
            tuple(sorted({p.source.version for p in members}, key=_version)),
            tuple(dict.fromkeys(p.source.cpu for p in members)),
        )
        for (package, resolver), members in groups.items()
    )


def _version(text: str) -> tuple[tuple[int, str], ...]:
    """Return numbers before words, by value."""
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in text.split("."))
