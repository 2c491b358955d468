"""What a run leaves behind: tensors by index, and which operator made each."""

from __future__ import annotations

from dataclasses import dataclass, field

from tflq.kernels.kernel import Array


@dataclass(slots=True, eq=False)
class Trace:
    """Tensors that are still held, by tensor index; `makers` gives the operator that made each (none for inputs)."""

    values: dict[int, Array] = field(default_factory=dict)
    makers: dict[int, int] = field(default_factory=dict)
