"""A model's first subgraph as boxes and arrows: its inputs, its operators in execution order, its outputs."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.model.ir import Model, TensorType, view


@dataclass(frozen=True, slots=True)
class Box:
    """An input, operator or output of a graph. `operator` is its index, None of inputs and outputs."""

    kind: str  # input, operator or output
    label: str
    operator: int | None
    tensors: tuple[int, ...]  # that it makes; of an output the one that it is


@dataclass(frozen=True, slots=True)
class Arrow:
    """Tensor `tensor` goes from box `start` to box `end`; start < end."""

    start: int
    end: int
    tensor: int


@dataclass(frozen=True, slots=True)
class Network:
    """Boxes in an order that all arrows follow."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    tensor_names: tuple[str, ...]


def network(model: Model) -> Network:
    """Read the boxes and arrows of a model's first subgraph. Constants are no boxes."""
    graph = view(model)
    names = tuple(spec.name or "" for spec in graph.tensors)
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    maker: dict[int, int] = {}
    for position, tensor in enumerate(graph.inputs):
        maker[tensor] = len(boxes)
        boxes.append(Box("input", f"input {position}", None, (tensor,)))
    for op in graph.ops:
        number = len(boxes)
        arrows += [Arrow(maker[t], number, t) for t in dict.fromkeys(op.inputs) if t in maker]
        boxes.append(Box("operator", op.name, op.index, op.outputs))
        maker.update(dict.fromkeys((t for t in op.outputs if t >= 0), number))
    for position, tensor in enumerate(graph.outputs):
        if tensor in maker:
            arrows.append(Arrow(maker[tensor], len(boxes), tensor))
        boxes.append(Box("output", f"output {position}", None, (tensor,)))
    return Network(tuple(boxes), tuple(arrows), names)


def tensor_type(model: Model, tensor: int) -> str:
    """Return the element type and the shape, as in "int8 [1, 8, 8, 16]"; "" if there is no such tensor."""
    tensors = view(model).tensors
    if not 0 <= tensor < len(tensors):
        return ""
    spec = tensors[tensor]
    kind = spec.type.label if isinstance(spec.type, TensorType) else str(spec.type)
    return f"{kind} {list(spec.shape)}"
