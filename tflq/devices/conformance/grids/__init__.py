"""Drafts of every operator: all types, with the parameters that matter."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.devices.conformance.draft import Draft
from tflq.devices.conformance.grids import (
    contracting,
    directed,
    elementwise,
    extremes,
    geometric,
    moving,
    refused,
    summing,
)

#: Number of draws of scales per combination of parameters, by level.
LEVELS = {"smoke": 1, "standard": 1, "exhaustive": 4}


def drafts(seed: int, level: str) -> Iterator[Draft]:
    """Yield all drafts of a level, in an order that depends only on seed and level.

    Those of smoke are selected from standard's.
    """
    for family in (contracting, elementwise, summing, moving, refused, extremes, directed, geometric):
        for turn in range(LEVELS[level]):
            yield from family.drafts(seed + turn)
