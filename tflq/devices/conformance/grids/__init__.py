"""Drafts of every operator: all types, with the parameters that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tflq.devices.conformance.draft import Draft
from tflq.devices.conformance.grids import (
    contracting,
    directed,
    elementwise,
    extremes,
    functions,
    geometric,
    layout,
    moving,
    rearranging,
    recurrent,
    refused,
    summing,
)

#: Number of draws of scales per combination of parameters, by level.
LEVELS = {"smoke": 1, "standard": 1, "exhaustive": 4}

#: Families in the order of their cases; a new one comes last, so that older cases keep their names.
BASIC = (contracting, elementwise, summing, moving, refused, extremes, directed, geometric)
#: Families of operators that only the level `full` asks for.
FURTHER = (rearranging, functions, recurrent)
#: Grids that a suite can have in place of all families.
FOCUSES: Mapping[str, Callable[[int], Iterator[Draft]]] = {"layout": layout.drafts}


def drafts(seed: int, level: str) -> Iterator[Draft]:
    """Yield all drafts of a level, in an order that depends only on seed and level.

    Those of smoke are selected from standard's.
    """
    for family in BASIC + FURTHER:
        for turn in range(LEVELS[level]):
            yield from family.drafts(seed + turn)
