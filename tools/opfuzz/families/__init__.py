"""Drawable operators: operator -> function(draw, operator) -> case. One file per family of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opfuzz.case import Case
from opfuzz.draw import Draw
from opfuzz.families import (
    binary,
    contracting,
    custom,
    imaging,
    indexing,
    moving,
    recurrent,
    reducing,
    segments,
    spreading,
    unary,
)

Spec = Callable[[Draw, str], Case]


def _joined(*tables: Mapping[str, Spec]) -> dict[str, Spec]:
    joined: dict[str, Spec] = {}
    for table in tables:
        for op, spec in table.items():
            if op in joined:
                raise ValueError(f"two ways to draw {op}")
            joined[op] = spec
    return dict(sorted(joined.items()))


SPECS: Mapping[str, Spec] = _joined(
    unary.SPECS,
    binary.SPECS,
    reducing.SPECS,
    contracting.SPECS,
    moving.SPECS,
    indexing.SPECS,
    imaging.SPECS,
    recurrent.SPECS,
    segments.SPECS,
    spreading.SPECS,
)
#: Operators with compiled loops that are compared with LiteRT elsewhere: drawn only for bounds checks.
BESIDES: Mapping[str, Spec] = custom.SPECS
