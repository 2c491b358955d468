"""Every difference from LiteRT that is known and meant, with its reason. Anything else that differs is a bug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opfuzz.case import Case
from opfuzz.compare import Outcome


@dataclass(frozen=True)
class Known:
    """A difference: the operators it touches, how to tell it, and why it is there."""

    ops: tuple[str, ...]
    holds: Callable[[Case, Outcome], bool]
    reason: str


KNOWN: tuple[Known, ...] = ()


def reason(case: Case, outcome: Outcome) -> str:
    """Why this difference is meant; empty where it is not."""
    for known in KNOWN:
        if case.op in known.ops and known.holds(case, outcome):
            return known.reason
    return ""
