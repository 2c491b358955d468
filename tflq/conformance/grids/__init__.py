"""Drafts of every operator: types times the parameters that matter."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.conformance.draft import Draft
from tflq.conformance.grids import contracting, directed, elementwise, extremes, moving, refused, summing

#: How many draws of scales a combination of parameters gets, by level.
LEVELS = {"smoke": 1, "standard": 1, "exhaustive": 4}


def drafts(seed: int, level: str) -> Iterator[Draft]:
    """Yield all drafts of a level, in an order that depends on nothing else. Those of smoke are picked from standard's."""
    for family in (contracting, elementwise, summing, moving, refused, extremes, directed):
        for turn in range(LEVELS[level]):
            yield from family.drafts(seed + turn)
