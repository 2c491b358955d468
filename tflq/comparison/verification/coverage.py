"""The coverage of a verification: the compared part, the whole, and the missing parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tflq.model.ir import Model, Signed, view
from tflq.model.ir.signatures import call, reach, roots


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """A subgraph that no signature runs, whose operators are not compared one by one.

    `callers` are the operators that run it, directly or through other subgraphs: their names by the signature ("" if
    the model has one) and their indices. Without callers a verification never runs it.
    """

    index: int
    name: str
    operators: int
    callers: Mapping[tuple[str, int], str]

    def __str__(self) -> str:
        """Return the number of its operators, with its index and name."""
        noun = "operator" if self.operators == 1 else "operators"
        return f"{self.operators:,} {noun} of subgraph {self.index} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Coverage:
    """Operators and outputs of the signatures' graphs: the numbers of fully compared ones, and of all.

    `missing` describes everything that was not compared, or not in all samples; `inside` describes operators that were
    compared only through the results of the operators that call them. `unwritten` describes tensors that the runtime
    never writes.
    """

    operators: tuple[int, int]
    outputs: tuple[int, int]
    missing: tuple[str, ...]
    inside: tuple[str, ...]
    unwritten: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """True if nothing is missing."""
        return not self.missing


def apart(model: Model, parts: Sequence[Signed]) -> tuple[Apart, ...]:
    """Return the subgraphs with operators that no signature runs."""
    callers: dict[int, dict[tuple[str, int], str]] = {}
    for part in parts:
        for op in view(model, part.root.subgraph).ops:
            for index in reach(model, set(call(op.record))):
                callers.setdefault(index, {})[part.name, op.index] = op.name
    run = {root.subgraph for root in roots(model)}
    return tuple(
        Apart(k, graph.name or "", len(graph.operators), callers.get(k, {}))
        for k, graph in enumerate(model.subgraphs)
        if k not in run and graph.operators
    )
