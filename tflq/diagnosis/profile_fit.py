"""Which profile a whole device is: every operator of a dump held against every profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tflq.diagnosis.dump import Dump
from tflq.diagnosis.samples import localize_samples, over_samples
from tflq.ir import Model
from tflq.profiles import PROFILES, Profile, by_name

#: Elements that agree and elements compared; None where nothing was compared.
Cell: TypeAlias = "tuple[int, int] | None"


def fit(model: Model, dumps: Sequence[Dump]) -> dict[str, tuple[Cell, ...]]:
    """By profile, a cell for every operator, over all samples. Each operator is fed the dump's own inputs."""
    return {name: tuple(_row(model, dumps, by_name(name))) for name in PROFILES}


def _row(model: Model, dumps: Sequence[Dump], profile: Profile) -> Iterator[Cell]:
    for located in over_samples(localize_samples(model, dumps, profile)):
        parts = located.differences.values()
        total = sum(d.elements for d in parts)
        yield (total - sum(d.elements if d.problem else d.differing for d in parts), total) if total else None
