"""Which release changed which operator's bits: differences between the formulas that hold for neighbouring releases.

Known faults of runtimes, with the profiles that reproduce them: the notes of all operators, resolved to names.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from tflq.engine.kernels.kernel import Signature
from tflq.engine.kernels.notes import Fault, Formula, faults, formulas
from tflq.engine.kernels.validity import RELEASES as KERNELS
from tflq.engine.kernels.validity import RuntimeConditions
from tflq.engine.profiles import PROFILES, by_name
from tflq.engine.profiles.profile import Profile
from tflq.engine.profiles.table import ALIASES, ROWS
from tflq.errors import UnknownNameError
from tflq.model.ir import TensorType


@dataclass(frozen=True, slots=True)
class Known:
    """A fault and the names of the profiles that reproduce it, or refuse what it leaves undefined."""

    fault: Fault
    profiles: tuple[str, ...]


@cache
def known_faults() -> tuple[Known, ...]:
    """Return every fault that a profile has."""
    return tuple(Known(fault, tuple(n for n, p in PROFILES.items() if _has(p, fault))) for fault in faults())


def faults_at(
    profile: Profile, op: str, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]
) -> tuple[Fault, ...]:
    """Return the faults of a profile's kernel for an operator on operands of those types."""
    return tuple(
        fault
        for fault in faults()
        if fault.op == op
        and any(not Signature.parse(types).mismatches(inputs, outputs) for types in fault.types)
        and _has(profile, fault)
    )


def _has(profile: Profile, fault: Fault) -> bool:
    """Return whether the fault's condition holds for a profile that takes all its forms."""
    if not any(when.holds(profile.runtime) for when in fault.when):
        return False
    rows = profile.kernels.get(fault.op, ())
    return all(any(_takes(types, row.signature) for row in rows) for types in fault.types)


def _takes(types: str, signature: Signature) -> bool:
    """Return whether a row of that signature takes operands of these types, everything optional among them."""
    form = Signature.parse(types)
    inputs, outputs = ([slot.types[0] for slot in slots if slot.types] for slots in (form.inputs, form.outputs))
    return signature.mismatches(inputs, outputs) == 0


RESOLVERS = ("ref", "opt", "xnnpack")


def _releases() -> tuple[str, ...]:
    """Return the releases that profiles and their other names model, from 2.3 of TensorFlow on, oldest first."""
    lines = ("tf", "tflite", "litert")
    numbers = {}
    for name in (*ROWS, *ALIASES):
        found = re.fullmatch(rf"({'|'.join(lines)})-(\d+)\.(\d+)-({'|'.join(RESOLVERS)})", name)
        if found is not None:
            numbers[name.rpartition("-")[0]] = (lines.index(found[1]), int(found[2]), int(found[3]))
    oldest, newest = _OLDEST, numbers[KERNELS[-1]]
    return tuple(sorted((r for r, n in numbers.items() if oldest <= n <= newest), key=numbers.__getitem__))


_OLDEST = (0, 2, 3)
#: Releases that profiles model, oldest first. A profile's name is release, dash, resolver.
RELEASES = _releases()


@dataclass(frozen=True, slots=True)
class ReleaseChange:
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
def history() -> tuple[ReleaseChange, ...]:
    """Return every change, by operator and form, oldest first; resolvers that changed alike are together."""
    found: dict[tuple[object, ...], list[str]] = {}
    for resolver, (last, first) in itertools.product(RESOLVERS, itertools.pairwise(RELEASES)):
        for old, new in _pairs(resolver, last, first):
            build = old.when.vectors is not None and new.when.vectors is not None
            key = old.op, old.types, last, first, old.text, new.text, old.source, build
            found.setdefault(key, []).append(resolver)
    changes = [ReleaseChange(op, types, tuple(r), *rest) for (op, types, *rest), r in found.items()]  # type: ignore[arg-type]
    return tuple(sorted(changes, key=lambda change: (change.op, change.types, RELEASES.index(change.first))))


def changes_between(one: str, other: str, op: str, types: Collection[str]) -> tuple[ReleaseChange, ...]:
    """Return what releases changed of an operator between two profiles of one resolver, a change for each form.

    `one` and `other` are profiles' names, in either order of time, and `types` the element types of the operator's
    first input and output ("int8"). `before` is the formula of `one` and `after` that of `other`; changes that a later
    release took back are left out. There are none for profiles of two resolvers, or of other libraries.
    """
    (first, resolver), (second, other_resolver) = (_split(name) for name in (one, other))
    if resolver != other_resolver or first not in RELEASES or second not in RELEASES:
        return ()
    low, high = sorted((RELEASES.index(first), RELEASES.index(second)))
    forms: dict[str, list[ReleaseChange]] = {}
    for change in history():
        inside = low <= RELEASES.index(change.last) and RELEASES.index(change.first) <= high
        if change.op == op and resolver in change.resolvers and inside and _is_about(change, types):
            forms.setdefault(change.types, []).append(change)
    found = (replace(steps[-1], before=steps[0].before, last=steps[0].last) for steps in forms.values())
    net = [change for change in found if change.before != change.after]
    return tuple(net) if low == RELEASES.index(first) else tuple(map(_turn, net))


def _split(profile: str) -> tuple[str, str]:
    """Return the release and the resolver; `litert-ref` is of the newest release."""
    release, _, resolver = profile.rpartition("-")
    return RELEASES[-1] if release == "litert" else release, resolver


def _is_about(change: ReleaseChange, types: Collection[str]) -> bool:
    """Return whether the form names one of these element types, or none ("8 bits to 8 bits")."""
    named = re.findall(r"u?int\d+|float\d+", change.types)
    return not named or any(word in types for word in named)


def _turn(change: ReleaseChange) -> ReleaseChange:
    return replace(change, before=change.after, after=change.before)


def _pairs(resolver: str, last: str, first: str) -> Iterator[tuple[Formula, Formula]]:
    """Yield the formulas of one operator and form that differ between two releases."""
    runtimes = [_runtime(release, resolver) for release in (last, first)]
    if None in runtimes:
        return
    before, after = ({(f.op, f.types): f for f in formulas() if _is_of(f, resolver, r)} for r in runtimes if r)
    for key in before.keys() & after.keys():
        if before[key].text != after[key].text:
            yield before[key], after[key]


def _is_of(formula: Formula, resolver: str, runtime: RuntimeConditions) -> bool:
    """Return whether a formula holds for a runtime and is about its resolver, not about one that it falls back to."""
    named = formula.when.resolvers[:1] or ("ref", "opt")
    return resolver in named and formula.when.holds(runtime)


def _runtime(release: str, resolver: str) -> RuntimeConditions | None:
    try:
        return by_name(f"{release}-{resolver}").runtime
    except UnknownNameError:
        return None
