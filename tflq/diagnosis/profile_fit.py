"""Identify a device's profile: every operator of a dump compared with every profile, and mixes of profiles.

If several profiles share an operator's computation, it runs once. A profile that reproduces every compared element
fits. If none fits, each type of operator may still agree with some profile: a mix.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from typing import TypeAlias

from tflq.comparison.evidence.dumps import Dump
from tflq.comparison.inspection.difference import Difference
from tflq.comparison.results import Located, Status, merge_samples, status_of
from tflq.comparison.verification.localization import Localizer, SharedResults, alone
from tflq.diagnosis.apart import Discrimination
from tflq.diagnosis.certainty import Certainty, Weighed, inside
from tflq.diagnosis.hypotheses import HypothesisKind, nearness
from tflq.diagnosis.localization import BySample, localize_samples, trust, walk
from tflq.diagnosis.mistakes.device import computation
from tflq.diagnosis.runtimes import foreign_causes
from tflq.engine.kernels.kernel import Exactness
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.model.ir import Model, view
from tflq.texts import Tabular, display_by

#: ULP of the largest magnitude by which another order of sums changes float32 results: float16 rounds by 4,096.
_REORDERED = 1 << 10
#: The ending of names of profiles that round once.
ONCE = "+single-rounding"
#: Agreeing elements and compared elements; None if nothing was compared, none if the profile never writes the results.
Cell: TypeAlias = "tuple[int, int] | None"
Column: TypeAlias = "tuple[Cell, ...]"


class FitVerdict(str, Enum):
    """The explanation of a dump by profiles."""

    FITS = "fits"  # one profile or more reproduce everything
    UNTOLD = "cannot tell"  # a profile fits, but so may others: too little was compared, or a foreign runtime also fits
    MIX = "mix"  # no profile fits, but every type of operator agrees with some profile
    PARTLY = "partly"  # some operators agree with no profile
    NONE = "none"  # no profile reproduces any operator completely
    NOTHING = "nothing"  # nothing was compared


@display_by("fit:fit_report", "fit_document", "parts")
@dataclass(frozen=True, eq=False)
class Fit(Tabular):
    """A dump compared with all profiles. `matrix` has a column of cells for each, the nearest to `base` first.

    `operators` are the names of the model's operators, in order of execution. `failures` gives, by operator index, the
    reason why the base did not run an operator that no profile ran. `informative` counts compared results that lie
    inside their types' ranges. `foreign` causes, of runtimes without a profile, reproduce elements that the base does
    not. `discrimination` has inputs that distinguish the fitting profiles, if they were searched.
    """

    base: str
    operators: tuple[str, ...]
    matrix: Mapping[str, Column]
    failures: Mapping[int, str] = field(default_factory=dict)
    informative: int = 0
    foreign: tuple[str, ...] = ()
    discrimination: Discrimination | None = None

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """Profiles, the best first: by explained elements, then by their distance from the base."""
        return tuple(sorted(self.matrix, key=lambda name: (-_agreeing(self.matrix[name]), -_exact(self.matrix[name]))))

    @property
    def best(self) -> str:
        """The profile that explains most; the one nearest to the base wins ties."""
        return self.ranked[0]

    @property
    def unexplained(self) -> tuple[int, ...]:
        """Operators that differ under the best profile; in a mix, or if none fits, under every one."""
        return tuple(i for i in self.compared if i not in exact_operators(self.matrix[self.best]))

    @property
    def unknown(self) -> tuple[int, ...]:
        """Operators that no profile explains."""
        explained = set().union(*(exact_operators(column) for column in self.matrix.values()))
        return tuple(i for i in self.compared if i not in explained)

    @cached_property
    def compared(self) -> tuple[int, ...]:
        """Operators that could be compared under some profile."""
        columns = tuple(self.matrix.values())
        cells = [[c for column in columns if (c := column[i])] for i in range(len(self.operators))]
        return tuple(i for i, known in enumerate(cells) if any(total for _, total in known))

    @property
    def elements(self) -> int:
        """The number of elements compared."""
        return sum(max((c[1] for column in self.matrix.values() if (c := column[i])), default=0) for i in self.compared)

    @cached_property
    def telling_by_type(self) -> Mapping[str, int]:
        """A lower bound on the number of elements, by operator type, that some profile does not reproduce."""
        found: dict[str, int] = {}
        for i in self.compared:
            cells = [c for column in self.matrix.values() if (c := column[i])]
            most = max((total - agreeing for agreeing, total in cells), default=0)
            found[self.operators[i]] = found.get(self.operators[i], 0) + most
        return found

    @property
    def telling(self) -> int:
        """A lower bound on the number of elements that distinguish profiles."""
        return sum(self.telling_by_type.values())

    @property
    def needed(self) -> int:
        """The number of informative results that excludes a fit by chance: see `certainty`."""
        return Weighed(tried={HypothesisKind.PROFILE: len(set(self.matrix.values()))}).needed(
            HypothesisKind.PROFILE, is_doubted=False
        )

    @property
    def certainty(self) -> Certainty:
        """The certainty that the device has the arithmetic of one of the fitting profiles."""
        if self.verdict != FitVerdict.FITS:
            return Certainty.NONE
        evidence = Weighed(self.telling, tried={HypothesisKind.PROFILE: len(set(self.matrix.values()))})
        reached = evidence.reaches(HypothesisKind.PROFILE, is_doubted=False)
        return Certainty.LIKELY if self.foreign and reached == Certainty.CERTAIN else reached

    @property
    def is_too_small(self) -> bool:
        """True if too little was compared to name a profile."""
        return self.informative < self.needed

    @property
    def is_foreign(self) -> bool:
        """True if a runtime without a profile explains the device equally well.

        It must reproduce elements that the base does not. Profiles must also be distinguished by only one operator
        type, or by fewer elements than exclude a fit by chance. Otherwise several kernels together identify a runtime.
        """
        types = sum(count > 0 for count in self.telling_by_type.values())
        return bool(self.foreign) and self.base not in self.fitting and (types < 2 or self.telling < self.needed)

    @property
    def names_best(self) -> bool:
        """True if one profile is nearer than others, by enough elements that distinguish profiles."""
        if self.verdict == FitVerdict.UNTOLD:
            return not self.is_foreign and self.telling >= self.needed
        return self.verdict not in (FitVerdict.NONE, FitVerdict.NOTHING)

    @property
    def fitting(self) -> tuple[str, ...]:
        """Profiles that reproduce every compared element, the nearest to the base first."""
        every = set(self.compared)
        return tuple(name for name, column in self.matrix.items() if every and exact_operators(column) >= every)

    @property
    def rounds_once(self) -> bool:
        """True if the base with one rounding fits, but not the base: what fitting profiles then have in common."""
        return self.base not in self.fitting and f"{self.base}{ONCE}" in self.fitting

    @property
    def ties(self) -> tuple[str, ...]:
        """Profiles that explain the same elements as the best one, including it."""
        return tuple(name for name in self.ranked if self.matrix[name] == self.matrix[self.best])

    @cached_property
    def mix(self) -> Mapping[str, tuple[str, ...]]:
        """By operator type, the profiles under which every compared element agrees, the nearest first."""
        by_type: dict[str, list[int]] = {}
        for index in self.compared:
            by_type.setdefault(self.operators[index], []).append(index)
        exact = {name: exact_operators(column) for name, column in self.matrix.items()}
        return {op: tuple(n for n in self.matrix if exact[n].issuperset(indices)) for op, indices in by_type.items()}

    @property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The smallest set of profiles that explains every explainable operator type, each with its types.

        The profile that explains most types comes first; the others explain the rest, those of its package preferred.
        """
        left = {op for op, names in self.mix.items() if names}
        chosen: dict[str, tuple[str, ...]] = {}
        while left:
            first = next(iter(chosen), None)
            name = max(self.matrix, key=lambda n: (sum(n in self.mix[op] for op in left), _kin(first, n)))
            chosen[name] = tuple(op for op in self.mix if op in left and name in self.mix[op])
            left -= set(chosen[name])
        return chosen

    @property
    def verdict(self) -> FitVerdict:
        """The verdict: a profile fits, a mix, or neither."""
        if not self.compared:
            return FitVerdict.NOTHING
        if self.fitting:
            return FitVerdict.UNTOLD if self.is_too_small or self.is_foreign else FitVerdict.FITS
        if all(self.mix.values()):
            return FitVerdict.MIX
        return FitVerdict.PARTLY if any(exact_operators(column) for column in self.matrix.values()) else FitVerdict.NONE


def _kin(first: str | None, name: str) -> bool:
    """Return whether two profiles describe the same package."""
    return first is not None and by_name(first).source.package == by_name(name).source.package


def exact_operators(column: Column) -> set[int]:
    """Return the operators whose compared elements all agree."""
    return {i for i, cell in enumerate(column) if cell is not None and cell[0] == cell[1]}


def _exact(column: Column) -> int:
    return len(exact_operators(column))


def _agreeing(column: Column) -> int:
    return sum(cell[0] for cell in column if cell is not None)


def fit(
    model: Model,
    dumps: Sequence[Dump],
    base: Profile | str = "litert-ref",
    by_sample: BySample | None = None,
    among: Collection[str] = (),
) -> Fit:
    """Compare all samples of a dump with every profile and its variant that rounds once, or with those `among` them.

    Each operator gets the dump's own inputs; missing ones are computed by the profile. `base` is the assumed profile of
    the device, or the one that its user runs otherwise: it breaks ties. `by_sample` is what `localize_samples` returns
    for it, if that is known.
    """
    first = by_name(base)
    by_sample = localize_samples(model, dumps, first) if by_sample is None else by_sample
    believed = [trust(dump, operators) for dump, operators in zip(dumps, by_sample, strict=True)]
    graph = view(model)
    parts, shared = tuple(alone(model, op.index) for op in graph.ops), SharedResults(computation)
    profiles = tuple(profile for profile in candidates(first) if not among or profile.name in among)
    walker = Localizer(model, first, parts=parts, shared=shared, reads_constants=False, carries=True)
    # All profiles take an operator before any takes the next: `shared` holds the results of one operator.
    walks = [walk(replace(walker, profile=profile), believed) for profile in profiles]
    rows, failures = [], {}
    for index, together in enumerate(zip(*walks, strict=True)):
        located = [merge_samples(samples) for samples in together]
        rows.append([_cell(one) for one in located])
        if located and all(one.failure for one in located):
            failures[index] = located[0].failure
    names = tuple(op.name for op in graph.ops)
    matrix = {p.name: tuple(row[i] for row in rows) for i, p in enumerate(profiles)}
    foreign = () if among else foreign_causes(model, believed, by_sample, first)
    return Fit(first.name, names, matrix, failures, _informative(model, believed, rows), foreign)


def _informative(model: Model, dumps: Sequence[Dump], rows: Sequence[Sequence[Cell]]) -> int:
    """Return the number of results of compared operators that are neither the lowest nor the highest of their type."""
    count = 0
    for operator, row in zip(view(model).ops, rows, strict=True):
        for dump in dumps if any(row) else ():
            count += sum(inside(dump.tensors[t]) for t in operator.outputs if t in dump.tensors)
    return count


def candidates(base: Profile) -> tuple[Profile, ...]:
    """Return every profile and every variant that rounds once, the nearest to `base` first; profiles come before
    variants.
    """
    named = [by_name(name) for name in PROFILES]
    once = [variant for p in named if (variant := p.with_single_rounding()).arithmetic != p.arithmetic]
    known = {profile.name for profile in (*named, *once)}
    own = () if base.name in known else (base,)
    near = partial(nearness, base)
    first = [profile for profile in (*own, *named, *once) if profile.name == base.name]
    rest = (*sorted(named, key=near), *sorted(once, key=near))
    return (*first, *(profile for profile in rest if profile.name != base.name))


def _cell(operator: Located) -> Cell:
    parts = [(d, operator.promises[t]) for t, d in operator.differences.items()]
    total = sum(d.elements for d, _ in parts)
    apart = sum(d.elements if d.problem else d.differing for d, promise in parts if not _reproduces(d, promise))
    return (total - apart, total) if total or (operator.unwritten and not operator.failure) else None


def _reproduces(difference: Difference, promise: Exactness) -> bool:
    """Return whether a profile gives these results: exactly, or as close as was measured.

    Where nothing was measured, another order of float32 sums may explain the difference, and no narrower type.
    """
    if status_of(difference, promise) == Status.DIFFERS:
        return False
    return difference.same or promise.ulp is not None or (difference.at_scale or 0) <= _REORDERED
