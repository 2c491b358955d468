"""How far a subgraph is proved: the tensors that are equal for every input of the subgraph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tflq.model.ir import Model, view
from tflq.proof.verdicts import OperatorProof, Word


@dataclass(frozen=True, slots=True)
class Coverage:
    """One subgraph, with equal inputs. `covered` are computed tensors whose whole upstream is proved equal.

    `edge` are those of them that the subgraph outputs or that an operator outside of the proof reads. `outputs` are the
    subgraph's outputs, `outside` the operators that are not covered.
    """

    subgraph: int
    covered: tuple[int, ...]
    edge: tuple[int, ...]
    outputs: tuple[int, ...]
    outside: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """True if no operator is outside of the proof."""
        return not self.outside


def coverage_of(model: Model, number: int, operators: Iterable[OperatorProof]) -> Coverage:
    """Return how far the first subgraph of `model`, which has that number in the file, is proved."""
    graph = view(model)
    equal = {o.index for o in operators if o.subgraph == number and o.word == Word.EQUAL}
    computed = {*graph.computed}
    varying = {t for t, spec in enumerate(graph.tensors) if spec.is_variable}
    covered = {t for t in range(len(graph.tensors)) if t not in computed} - varying
    outside = []
    for op in graph.ops:
        if op.index in equal and covered.issuperset(t for t in op.inputs if t >= 0):
            covered.update(t for t in op.writes)
        else:
            covered.difference_update(op.writes)
            outside.append(op.index)
    read = {t for index in outside for t in graph.op(index).inputs}
    reached = [t for t in graph.computed if t in covered]
    edge = tuple(t for t in reached if t in read or t in graph.outputs)
    return Coverage(number, tuple(reached), edge, tuple(t for t in graph.outputs if t >= 0), tuple(outside))
