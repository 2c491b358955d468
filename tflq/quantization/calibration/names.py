"""The names by which a model's inputs may be given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tflq.errors import CalibrationError
from tflq.model.ir import Model, TensorSpec, view
from tflq.typing import Array

Name = TypeVar("Name", str, Any)


@dataclass(frozen=True, slots=True, eq=False)
class InputNames:
    """The inputs of the first subgraph, and their positions by tensor index, tensor name and signature name."""

    tensors: tuple[int, ...]
    specs: tuple[TensorSpec, ...]
    positions: Mapping[str | int, int]

    @staticmethod
    def of(model: Model) -> InputNames:
        """Return the names from the model's first subgraph; tensor names win clashes."""
        graph = view(model)
        positions: dict[str | int, int] = {tensor: i for i, tensor in enumerate(graph.inputs)}
        for signature in model.signature_defs or ():
            if signature.subgraph_index == 0:
                positions.update({name: positions[tensor] for name, tensor in signature.inputs if tensor in positions})
        positions.update({name: i for i, tensor in enumerate(graph.inputs) if (name := graph.tensors[tensor].name)})
        return InputNames(graph.inputs, tuple(graph.tensors[t] for t in graph.inputs), positions)

    def ordered(self, names: Mapping[Any, ArrayLike], sample: int | None) -> tuple[Array, ...]:
        """Return arrays given by name or tensor index, in input order."""
        return tuple(np.asarray(names[name]) for name in self.order(names, sample))

    def order(self, names: Iterable[Name], sample: int | None = None) -> tuple[Name, ...]:
        """Return the given names in input order; every input must be named once, and nothing else."""
        by_position: dict[int, Name] = {}
        for name in names:
            i = self.positions.get(name)
            if i is None or i in by_position:
                reason = "there is no input of that name" if i is None else "is given twice"
                known = " or ".join(n for n in self.positions if isinstance(n, str))
                raise CalibrationError(reason, sample=sample, name=str(name), expected=known)
            by_position[i] = name
        for i, spec in enumerate(self.specs):
            if i not in by_position:
                raise CalibrationError("no value is given", sample=sample, name=spec.name or f"input {i}")
        return tuple(by_position[i] for i in range(len(self.specs)))

    def check_count(self, count: int, sample: int | None) -> None:
        """Raise if the number of arrays differs from the number of inputs."""
        if count != len(self.specs):
            raise CalibrationError("number of inputs", sample=sample, expected=len(self.specs), got=count)
