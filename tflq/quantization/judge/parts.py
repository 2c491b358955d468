"""Parts of joint outputs, each with its own figures: one lost part can hide behind the others' signal."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.layout import groups_of, merge
from tflq.model.ir import GraphView
from tflq.quantization.judge.fidelity import Fidelity
from tflq.typing import Array

Places = NDArray[np.int64] | slice

#: Distinct values are counted up to this number.
MOST_VALUES = 256
#: Most elements of an output that is a row of numbers, each of which is judged alone, too.
_MOST_COLUMNS = 64


@dataclass(slots=True, eq=False)
class Part:
    """The elements of one output that operands of concatenations give.

    `output` is its position among the outputs, `places` are flat indices of its elements there. `values` are the
    distinct values of the other model's elements, up to MOST_VALUES of them; `given` those of the reference's.
    `column` is the position of the only element of a part that is one number of a row.
    """

    output: int
    places: Places
    fidelity: Fidelity
    values: set[float] = field(default_factory=set)
    given: set[float] = field(default_factory=set)
    column: int | None = None

    def add(self, reference: Array, other: Array, scale: float, zero_point: float) -> None:
        """Count one sample of the whole output; the values of `other` are scale * (other - zero_point)."""
        ours, theirs = (np.ascontiguousarray(a).reshape(-1)[self.places] for a in (reference, other))
        self.fidelity.add(ours, theirs, scale, zero_point)
        for known, values in ((self.given, ours), (self.values, theirs)):
            if len(known) < MOST_VALUES:
                known.update(np.unique(values)[:MOST_VALUES].tolist())


def parts_of(graph: GraphView, output: int, tensor: int) -> list[Part]:
    """Return the parts of an output that a concatenation joins; none if there are fewer than two, or too many.

    Channels that the same tensors give at every anchor are one part: boxes of three scales are boxes.
    """
    groups = merge(groups_of(graph, output, tensor))
    if len(groups) < 2:
        return []
    return [Part(output, np.sort(group.places.reshape(-1)), _name(graph, group.origins[0])) for group in groups]


def units_of(graph: GraphView, output: int, tensor: int) -> list[Part]:
    """Return an output as a part of its own, and its numbers one by one if it is a row of a few that nothing joins."""
    count = int(np.prod(graph.tensors[tensor].shape))
    is_row = 1 < count <= _MOST_COLUMNS and graph.tensors[tensor].shape[-1] == count
    is_row = is_row and not parts_of(graph, output, tensor)
    columns = [Part(output, slice(k, k + 1), _name(graph, tensor), column=k) for k in range(count if is_row else 0)]
    return [Part(output, slice(None), _name(graph, tensor)), *columns]


def _name(graph: GraphView, tensor: int) -> Fidelity:
    maker, name = graph.maker(tensor), graph.tensors[tensor].name or ""
    return Fidelity(name, "", -1) if maker is None else Fidelity(name, maker.builtin, maker.index)
