"""Drafts of every operator: all types, with the parameters that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tflq.devices.grids import contracting, directed, elementwise, geometric, recurrent, rows
from tflq.devices.grids import contracting as extremes
from tflq.devices.grids import elementwise as functions
from tflq.devices.grids import geometric as layout
from tflq.devices.grids import recurrent as summing
from tflq.devices.suites.draft import Draft

#: Number of draws of scales per combination of parameters, by level.
LEVELS = {"smoke": 1, "standard": 1, "exhaustive": 4}

#: Families in the order of their cases; a new one comes last, so that older cases keep their names.
BASIC = (
    contracting.drafts,
    elementwise.drafts,
    summing.summing_drafts,
    rows.drafts,
    rows.refused_drafts,
    extremes.extremes_drafts,
    directed.drafts,
    geometric.drafts,
)
#: Families of operators that only the level `full` asks for.
FURTHER = (rows.rearranging_drafts, functions.functions_drafts, recurrent.drafts)
#: Grids that a suite can have in place of all families.
FOCUSES: Mapping[str, Callable[[int], Iterator[Draft]]] = {"layout": layout.layout_drafts}


def drafts(seed: int, level: str) -> Iterator[Draft]:
    """Yield all drafts of a level, in an order that depends only on seed and level.

    Those of smoke are selected from standard's.
    """
    for family in BASIC + FURTHER:
        for turn in range(LEVELS[level]):
            yield from family(seed + turn)
