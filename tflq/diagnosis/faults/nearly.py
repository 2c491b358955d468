"""Float results that a hypothesis reproduces up to the rounding of floats, far nearer than the profile does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind
from tflq.diagnosis.hypotheses import Kind, hypotheses
from tflq.diagnosis.outcomes import results
from tflq.typing import Array

#: The largest distance in units of the largest magnitude's last place, and how much farther the profile must be.
_NEAR, _FARTHER = 16.0, 64.0
#: Number of elements from which on nearness of all is no chance, and causes that are named.
_ENOUGH, _NAMED = 4, 3


def nearly(case: Case) -> Defect | None:
    """Return the hypotheses that come within the rounding of floats; None if none does, or if the profile does."""
    if case.observed[0].dtype != np.float32 or case.differing < _ENOUGH:
        return None
    own = max(_distance(e, o) for e, o in zip(case.expected, case.observed, strict=True))
    if own < _NEAR:
        return None
    found = sorted((far, name) for far, name in _near(case) if far * _FARTHER <= own)
    if not found:
        return None
    names = [name for far, name in found if far <= 2 * found[0][0] + 1]
    more = f" or {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    name = f"{' or '.join(names[:_NAMED])}{more}, up to the rounding of floats"
    place = f"within {found[0][0]:.3g} units in the last place of the largest magnitude; the profile within {own:.3g}"
    tell = "the order of sums and the rounding of the device's floats are not known"
    return Defect(DefectKind.PRECISION, name, Certainty.LIKELY, case.tensor, place, "", tell)


def _near(case: Case) -> Iterator[tuple[float, str]]:
    """Yield the distance of mistakes within reach, over all samples."""
    first = case.parts[0]
    for hypothesis in hypotheses(first, case.profile):
        if hypothesis.kind != Kind.MISTAKE:
            continue
        farthest = 0.0
        for part, seen in zip(case.parts, case.observed, strict=True):
            made = results(hypothesis.device, part).get(case.tensor)
            farthest = max(farthest, _distance(made, seen))
            if farthest > _NEAR:
                break
        if farthest <= _NEAR:
            yield farthest, hypothesis.name


def _distance(made: Array | None, seen: Array) -> float:
    """Return the largest distance in units in the last place of the largest magnitude seen."""
    if made is None or made.shape != seen.shape or not np.isfinite(seen).all() or not np.isfinite(made).all():
        return float("inf")
    largest = np.abs(seen).max(initial=0)
    apart = np.abs(made.astype(np.float64) - seen.astype(np.float64)).max(initial=0)
    return float(apart / np.spacing(np.float32(max(largest, 1e-30))))
