"""Which release changed which operator's bits: differences between the formulas that hold for neighbouring releases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tflq.errors import UnknownNameError
from tflq.kernels.notes import Formula
from tflq.kernels.tables.rows import formulas
from tflq.kernels.validity import Runtime
from tflq.profiles import by_name

#: Releases that profiles model, oldest first. A profile's name is release, dash, resolver.
RELEASES = (
    "tf-2.3",
    "tf-2.5",
    *(f"tflite-2.{minor}" for minor in range(7, 15)),
    *(f"litert-{version}" for version in ("1.0", "1.2", "1.4", "2.0", "2.1", "2.2", "2.3")),
)
RESOLVERS = ("ref", "opt", "xnnpack")


@dataclass(frozen=True, slots=True)
class Change:
    """One change between two neighbouring releases: `last` still computes `before`, `first` already `after`.

    `build`: a flag of the released package decided (vector code), not the source.
    """

    op: str
    types: str
    resolvers: tuple[str, ...]
    last: str
    first: str
    before: str
    after: str
    source: str
    build: bool


@cache
def history() -> tuple[Change, ...]:
    """Return every change, by operator and form, oldest first; resolvers that changed alike are together."""
    found: dict[tuple[object, ...], list[str]] = {}
    for resolver, (last, first) in itertools.product(RESOLVERS, itertools.pairwise(RELEASES)):
        for old, new in _pairs(resolver, last, first):
            build = old.when.vectors is not None and new.when.vectors is not None
            key = old.op, old.types, last, first, old.text, new.text, old.source, build
            found.setdefault(key, []).append(resolver)
    changes = [Change(op, types, tuple(r), *rest) for (op, types, *rest), r in found.items()]  # type: ignore[arg-type]
    return tuple(sorted(changes, key=lambda change: (change.op, change.types, RELEASES.index(change.first))))


def _pairs(resolver: str, last: str, first: str) -> Iterator[tuple[Formula, Formula]]:
    """Yield the formulas of one operator and form that differ between two releases."""
    runtimes = [_runtime(release, resolver) for release in (last, first)]
    if None in runtimes:
        return
    before, after = ({(f.op, f.types): f for f in formulas() if _is_of(f, resolver, r)} for r in runtimes if r)
    for key in before.keys() & after.keys():
        if before[key].text != after[key].text:
            yield before[key], after[key]


def _is_of(formula: Formula, resolver: str, runtime: Runtime) -> bool:
    """Return whether a formula holds for a runtime and is about its resolver, not about one that it falls back to."""
    named = formula.when.resolvers[:1] or ("ref", "opt")
    return resolver in named and formula.when.holds(runtime)


def _runtime(release: str, resolver: str) -> Runtime | None:
    try:
        return by_name(f"{release}-{resolver}").runtime
    except UnknownNameError:
        return None
