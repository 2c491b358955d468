"""What a run leaves behind: tensors by index, which operator made each, and what each is promised to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflq.kernels.exactness import EXACT, Exactness
from tflq.kernels.kernel import Array, Operand


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """What the latest call of a subgraph was given and made, by tensor index, and all of its tensors as it had them."""

    operands: tuple[Operand, ...]
    values: Mapping[int, Array]


@dataclass(slots=True, eq=False)
class Trace:
    """Tensors that are still held, by tensor index; `makers` gives the operator that made each (none for inputs).

    `promises` are those of everything that the plan's operators make, held or not. `called` holds the subgraphs that
    were called, by index, where that was asked for.
    """

    values: dict[int, Array] = field(default_factory=dict)
    makers: dict[int, int] = field(default_factory=dict)
    promises: Mapping[int, Exactness] = field(default_factory=dict)
    called: Mapping[int, Called] = field(default_factory=dict)

    def promise(self, tensor: int) -> Exactness:
        """Return how far a tensor is promised to be what the runtime has, given the same inputs of the graph."""
        return self.promises.get(tensor, EXACT)
