"""The values that describe rewrites: what became of an operator, and what keeps a model from being portable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.model.ir import Model, OperatorView


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten operator: its index and name in the source model, the tensor it made, and the operators instead.

    `cost` is the loss of accuracy ("exact" if there is none), `bytes` the constants that it adds to the file.
    """

    index: int
    op: str
    name: str
    becomes: str
    why: str
    bytes: int
    cost: str = "exact"


def rewrite_of(operator: OperatorView, steps: Sequence[str], why: str, count: int) -> Rewrite:
    """Return the rewrite of an operator of the source to some others, with the bytes of their constants."""
    return Rewrite(operator.index, operator.name, operator.output().name or "", ", ".join(steps), why, count)


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """A rewritten model; `origins` are the indices of its operators in the source model."""

    model: Model
    rewrites: tuple[Rewrite, ...]
    origins: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """An operator whose bits differ between runtimes: why, what it is worth to keep it, and what to do instead."""

    index: int
    op: str
    name: str
    why: str
    kept: str
    instead: str
