"""The results of a run: tensors by index, the operator that made each, and its promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflq.engine.kernels.exactness import EXACT, Exactness
from tflq.engine.kernels.kernel import Operand
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """The inputs and results of a subgraph's latest call, by tensor index, and all its tensors at that time."""

    operands: tuple[Operand, ...]
    values: Mapping[int, Array]


@dataclass(slots=True, eq=False)
class Trace:
    """Kept tensors by tensor index; `makers` gives the operator that made each (none for inputs).

    `promises` are those of all results of the plan's operators, kept or not. `called` holds the subgraphs that were
    called, by index, if that was requested.
    """

    values: dict[int, Array] = field(default_factory=dict)
    makers: dict[int, int] = field(default_factory=dict)
    promises: Mapping[int, Exactness] = field(default_factory=dict)
    called: Mapping[int, Called] = field(default_factory=dict)

    def promise(self, tensor: int) -> Exactness:
        """Return how exactly a tensor equals the runtime's, given the same inputs of the graph."""
        return self.promises.get(tensor, EXACT)
