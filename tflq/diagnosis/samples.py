"""Dumps of several samples: every sample localized, and operators seen over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.diagnosis.dump import Dump
from tflq.diagnosis.localization import Located, localize
from tflq.inspection.difference import merged
from tflq.ir import Model
from tflq.profiles import Profile


def localize_samples(
    model: Model, dumps: Sequence[Dump], profile: Profile, mode: str = "isolated"
) -> tuple[tuple[Located, ...], ...]:
    """Every sample of a dump, its differences numbered by their sample."""
    return tuple(tuple(_of_sample(o, k) for o in localize(model, dump, profile, mode)) for k, dump in enumerate(dumps))


def over_samples(found: Sequence[Sequence[Located]]) -> tuple[Located, ...]:
    """Operators over all samples: differences merged, reasons of operators that no sample lets compare."""
    return tuple(_over_samples(one) for one in zip(*found, strict=True))


def most_telling(found: Sequence[Sequence[Located]], index: int) -> int:
    """The sample in which most elements of operator `index` differ."""
    counts = [sum(d.differing for d in sample[index].differences.values()) for sample in found]
    return counts.index(max(counts))


def _of_sample(found: Located, sample: int) -> Located:
    numbered = {
        t: d if d.first is None else replace(d, first=replace(d.first, sample=sample))
        for t, d in found.differences.items()
    }
    return replace(found, differences=numbered)


def _over_samples(found: Sequence[Located]) -> Located:
    if len(found) == 1:
        return found[0]
    tensors = dict.fromkeys(t for o in found for t in o.differences)
    return replace(
        found[0],
        differences={t: merged(o.differences[t] for o in found if t in o.differences) for t in tensors},
        assumed=tuple(dict.fromkeys(t for o in found for t in o.assumed)),
        reason="" if tensors else found[0].reason,
        overwritten={t: other for o in found for t, other in o.overwritten.items()},
    )
