"""Rules and their findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from tflq.diagnosis.linting.site import Site


class Level(str, Enum):
    """Error: a runtime refuses the model, or its bits have no meaning. Warning: off the spec, or less accurate.

    Note: an explanation, which does not change the exit code.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Breach:
    """A violation of a rule by one operator: `tensor` is an index of its subgraph, -1 for none.

    `outcome` replaces the rule where one question has two answers.
    """

    tensor: int
    required: str
    found: str
    fixable: bool = False
    outcome: Rule | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `check` yields the violations by one operator."""

    id: str
    level: Level
    summary: str
    check: Callable[[Site], Iterator[Breach]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation with its place: `operator` is an index of subgraph `subgraph`; `tensor` is one too, or None."""

    rule: str
    level: Level
    summary: str
    subgraph: int
    operator: int
    op: str
    tensor: int | None
    name: str
    required: str
    found: str
    fixable: bool
