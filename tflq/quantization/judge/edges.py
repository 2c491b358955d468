"""The inputs and outputs of two models in one order: by the names of their signatures or tensors before position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.errors import InputError
from tflq.model.ir import GraphView, Model, input_names, output_names, view
from tflq.typing import Array

#: Suffixes that converters append to the name of a tensor that they quantize.
_SUFFIXES = ("_int8", "_int16", "_uint8", "_quantized", "_requantized", "_dequantize", "_quantize")
#: Number of dimensions from which on converters move the channels.
_LEAST_RANK = 3


@dataclass(frozen=True, slots=True)
class Edges:
    """A model with its inputs and outputs in another model's order, and what was done for that.

    `turned` are axes, by tensor, in which the model has an input or an output whose channels the other model has at
    another place: its values are the other's with these axes.
    """

    model: Model
    turned: Mapping[int, tuple[int, ...]]
    remarks: tuple[str, ...]

    def turn(self, tensor: int, values: Array) -> Array:
        """Return values of the other model's tensor as this model has them."""
        return values.transpose(self.turned[tensor]) if tensor in self.turned else values

    def turn_back(self, tensor: int, values: Array) -> Array:
        """Return values of this model's tensor as the other model has them."""
        axes = self.turned.get(tensor)
        return values if axes is None else values.transpose(sorted(range(len(axes)), key=axes.__getitem__))


def align(reference: Model, other: Model) -> Edges:
    """Return `other` with its inputs and outputs in the reference's order.

    They are paired by the names of signatures, else by those of tensors, else by position, else by shape. A shape fits
    if it is the same, or has the channels (axis 1 or the last) at the other end.

    Raises:
        InputError: Inputs or outputs do not correspond.
    """
    ours, theirs, turned, remarks = view(reference), view(other), dict[int, tuple[int, ...]](), list[str]()
    edges = []
    for what, a, b, names in (
        ("input", ours.inputs, theirs.inputs, input_names),
        ("output", ours.outputs, theirs.outputs, output_names),
    ):
        shapes = [[graph.tensors[t].shape for t in edge] for graph, edge in ((ours, a), (theirs, b))]
        order = _order(shapes, [names(reference), names(other)], [_plain(ours, a), _plain(theirs, b)])
        if order is None:
            raise InputError(f"the models' {what}s differ", expected=shapes[0], got=shapes[1])
        if order != list(range(len(order))):
            pairs = ", ".join(f"{k} with {place}" for k, place in enumerate(order))
            remarks.append(f"{what}s in another order: paired by name or shape, number {pairs} of the other model")
        edges.append(tuple(b[place] for place in order))
        for t, place in zip(a, order, strict=True):
            shape, wanted = ours.tensors[t].shape, shapes[1][place]
            axes = _axes(shape, wanted)
            if axes is not None and shape != wanted:
                turned[b[place]] = axes
                remarks.append(
                    f"{what} {ours.tensors[t].name}: {list(shape)} against {list(wanted)}, the channels are at another "
                    f"place: compared as transposed by {list(axes)}"
                )
    record = replace(theirs.record, inputs=edges[0], outputs=edges[1])
    index = next(k for k, graph in enumerate(other.subgraphs) if graph is theirs.record)
    subgraphs = (*other.subgraphs[:index], record, *other.subgraphs[index + 1 :])
    return Edges(replace(other, subgraphs=subgraphs), turned, tuple(remarks))


def plain_name(name: str) -> str:
    """Return a tensor's name without what converters append."""
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _plain(graph: GraphView, tensors: Sequence[int]) -> list[str]:
    return [plain_name(graph.tensors[t].name or "") for t in tensors]


def _order(shapes: Sequence[Sequence[tuple[int, ...]]], *names: Sequence[Sequence[str]]) -> list[int] | None:
    """Return for each of our edges the position of its twin; None if there is none."""
    count = len(shapes[0])
    if count != len(shapes[1]):
        return None
    orders: list[list[int]] = [
        [theirs.index(name) for name in mine]
        for mine, theirs in (map(list, pair) for pair in names)
        if len(set(mine)) == count and set(mine) == set(theirs)
    ]
    orders.append(list(range(count)))
    twins = [[k for k, b in enumerate(shapes[1]) if _axes(a, b) is not None] for a in shapes[0]]
    if all(len(found) == 1 for found in twins) and len({found[0] for found in twins}) == count:
        orders.append([found[0] for found in twins])
    return next((order for order in orders if all(k in fits for k, fits in zip(order, twins, strict=True))), None)


def _axes(ours: tuple[int, ...], theirs: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the axes by which a shape becomes another: as it is, or with the channels moved; None if it does not."""
    rank = len(ours)
    ways = [tuple(range(rank))]
    if rank >= _LEAST_RANK:
        ways += [(0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))]
    return next((axes for axes in ways if rank == len(theirs) and tuple(ours[k] for k in axes) == tuple(theirs)), None)
