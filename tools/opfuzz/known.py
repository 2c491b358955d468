"""Known and intended differences from LiteRT, with reasons. Any other difference is a bug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opfuzz.case import Case
from opfuzz.compare import Outcome


@dataclass(frozen=True)
class Known:
    """A difference: its operators, its pattern, and its reason."""

    ops: tuple[str, ...]
    holds: Callable[[Case, Outcome], bool]
    reason: str


KNOWN: tuple[Known, ...] = ()


def reason(case: Case, outcome: Outcome) -> str:
    """Return the reason why this difference is intended; empty if it is not."""
    for known in KNOWN:
        if case.op in known.ops and known.holds(case, outcome):
            return known.reason
    return ""
