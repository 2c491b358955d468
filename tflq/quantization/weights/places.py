"""The weights of a model: constants that operators of any subgraph multiply by or look up, and their roles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from tflq.model.ir import GraphView, Model, OperatorView, TensorType, view
from tflq.typing import Array

#: Operators with float kernels for integer weights: the operand that holds weights, and their axis of channels.
_OPERANDS = {"FULLY_CONNECTED": (1, 0), "EMBEDDING_LOOKUP": (1, 0), "CONV_2D": (1, 0), "DEPTHWISE_CONV_2D": (1, 3)}
#: Operators of attention between the projections of queries, keys and values, and that of the result.
_ATTENTION = frozenset(("BATCH_MATMUL", "DYNAMIC_UPDATE_SLICE", "odml.scaled_dot_product_attention"))


class Role(Enum):
    """The part that weights play in a decoder."""

    EMBEDDING = "embedding"
    ATTENTION = "attention"
    FEED_FORWARD = "feed-forward"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Use:
    """A tensor of a subgraph that holds weights, the operator that reads it, and the operator's name."""

    subgraph: int
    operator: int
    tensor: int
    op: str


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """Weights in one buffer: all their uses, their values with the axis of channels, role, and name."""

    buffer: int
    uses: tuple[Use, ...]
    values: Array
    axis: int
    role: Role
    name: str

    @property
    def ops(self) -> frozenset[str]:
        """The names of the operators that read them."""
        return frozenset(use.op for use in self.uses)

    @property
    def rows(self) -> Array:
        """The values as (channels, inputs)."""
        return np.moveaxis(self.values, self.axis, 0).reshape(self.values.shape[self.axis], -1)

    def from_rows(self, rows: Array) -> Array:
        """Return an array of `rows`' form in the form of the values."""
        moved = np.moveaxis(self.values, self.axis, 0).shape
        return np.ascontiguousarray(np.moveaxis(rows.reshape(moved), 0, self.axis))


def weights_of(model: Model) -> tuple[Weight, ...]:
    """Return the float weights of a model that operators with integer forms read, and no other.

    Constants that an operator without such a form reads, too, are not among them.
    """
    uses: dict[int, list[Use]] = defaultdict(list)
    blocked: set[int] = set()
    for number in range(len(model.subgraphs)):
        graph = view(model, number)
        blocked |= {graph.tensors[t].buffer for t in (*graph.inputs, *graph.outputs)}
        for operator in graph.ops:
            for position, tensor in enumerate(operator.inputs):
                if tensor < 0 or graph.data(tensor) is None:
                    continue
                buffer = graph.tensors[tensor].buffer
                if _takes(graph, operator, position):
                    uses[buffer].append(Use(number, operator.index, tensor, operator.name))
                else:
                    blocked.add(buffer)
    found = (_weight(model, buffer, places) for buffer, places in sorted(uses.items()) if buffer not in blocked)
    return tuple(weight for weight in found if weight is not None)


def _takes(graph: GraphView, operator: OperatorView, position: int) -> bool:
    """Return whether an operand is one of weights, of an operator on floats."""
    if operator.name not in _OPERANDS or _OPERANDS[operator.name][0] != position:
        return False
    outputs = [spec.type for spec in operator.output_specs if spec is not None]
    return graph.tensors[operator.inputs[position]].type == TensorType.FLOAT32 and outputs == [TensorType.FLOAT32]


def _weight(model: Model, buffer: int, uses: Sequence[Use]) -> Weight | None:
    """Return the weights in a buffer; None if their uses differ in shape, or they are not finite."""
    specs = [view(model, use.subgraph).tensors[use.tensor] for use in uses]
    axes = {_OPERANDS[use.op][1] for use in uses}
    ranks = {4 if use.op in ("CONV_2D", "DEPTHWISE_CONV_2D") else 2 for use in uses}
    if len({spec.shape for spec in specs}) != 1 or len(axes) != 1 or ranks != {len(specs[0].shape)}:
        return None
    data = model.buffers[buffer].data
    assert data is not None  # a tensor without data has no use
    count = int(np.prod(specs[0].shape))
    if not count or data.size != 4 * count:
        return None
    values = np.frombuffer(data, "<f4").reshape(specs[0].shape)
    if not np.isfinite(values).all():
        return None
    name = next((spec.name for spec in specs if spec.name), "")
    return Weight(buffer, tuple(uses), values, axes.pop(), _role(model, uses), name)


def _role(model: Model, uses: Sequence[Use]) -> Role:
    """Return the role of weights: that of a table if any operator looks them up."""
    if any(use.op == "EMBEDDING_LOOKUP" for use in uses):
        return Role.EMBEDDING
    for use in uses:
        graph = view(model, use.subgraph)
        operator = graph.op(use.operator)
        if any(out in graph.outputs for out in operator.outputs) or _ends(graph, operator):
            return Role.OUTPUT
        if _reaches(graph, operator, forward=True) or _reaches(graph, operator, forward=False):
            return Role.ATTENTION
    return Role.FEED_FORWARD


def _ends(graph: GraphView, operator: OperatorView) -> bool:
    """Return whether an operator's result leads to outputs of the graph through pointwise operators alone."""
    here = operator.outputs[0]
    while here not in graph.outputs:
        readers = graph.readers(here)
        if len(readers) != 1 or readers[0].name not in ("RESHAPE", "TANH", "MUL", "DIV"):
            return False
        here = readers[0].outputs[0]
    return True


def _reaches(graph: GraphView, operator: OperatorView, *, forward: bool) -> bool:
    """Return whether attention comes before the next product with weights, behind an operator or before it."""
    waiting, seen = [operator], {operator.index}
    while waiting:
        for near in _near(graph, waiting.pop(), forward=forward):
            if near.index in seen:
                continue
            seen.add(near.index)
            if _name(near) in _ATTENTION:
                return True
            if near.name not in ("FULLY_CONNECTED", "CONV_2D", "ADD"):  # ADD ends a residual branch
                waiting.append(near)
    return False


def _near(graph: GraphView, operator: OperatorView, *, forward: bool) -> Iterator[OperatorView]:
    if forward:
        for tensor in operator.outputs:
            yield from graph.readers(tensor)
    else:
        for tensor in operator.inputs:
            maker = graph.maker(tensor)
            if maker is not None:
                yield maker


def _name(operator: OperatorView) -> str:
    """Return the operator's name; for a composite, the composite's."""
    options = operator.record.options_2
    return str(options.get("name")) if operator.name == "STABLEHLO_COMPOSITE" and options is not None else operator.name
