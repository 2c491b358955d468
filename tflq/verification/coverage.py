"""The coverage of a verification: the compared part, the whole, and the missing parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.ir import Model, view
from tflq.ir.signatures import called, reached


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """A subgraph other than the first, whose operators are not compared one by one.

    `callers` are the operators of the first subgraph that run it, directly or through other subgraphs: their names by
    their indices. Without callers a verification never runs it.
    """

    index: int
    name: str
    operators: int
    callers: Mapping[int, str]

    def __str__(self) -> str:
        """Return the number of its operators, with its index and name."""
        noun = "operator" if self.operators == 1 else "operators"
        return f"{self.operators:,} {noun} of subgraph {self.index} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Coverage:
    """Operators of the first subgraph and outputs of the graph: the numbers of fully compared ones, and of all.

    `missing` describes everything that was not compared, or not in all samples; `inside` describes operators that were
    compared only through the results of the operators that call them.
    """

    operators: tuple[int, int]
    outputs: tuple[int, int]
    missing: tuple[str, ...]
    inside: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """True if nothing is missing."""
        return not self.missing


def apart(model: Model) -> tuple[Apart, ...]:
    """Return the subgraphs after the first that have operators."""
    callers: dict[int, dict[int, str]] = {}
    for op in view(model).ops:
        for index in reached(model, set(called(op.record))):
            callers.setdefault(index, {})[op.index] = op.name
    return tuple(
        Apart(k, graph.name or "", len(graph.operators), callers.get(k, {}))
        for k, graph in enumerate(model.subgraphs)
        if k and graph.operators
    )
