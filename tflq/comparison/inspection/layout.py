"""The parts of a model's outputs, and where their elements come from.

Where the elements of a tensor come from: the tensors that concatenations on the way joined.

The parts of a model's outputs: groups of channels with one meaning, over anchors.

A detector gives boxes, scores, keypoints or mask coefficients for each of many anchors, as outputs of their own or
joined into one. Groups are found from the graph alone: by the tensors that concatenations join, and by the operators
that make these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import GraphView, OperatorView, TensorType

Places = NDArray[np.int64]

#: Operators that keep the order of elements.
_KEEPING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "QUANTIZE", "DEQUANTIZE"})
_MOST_DEPTH = 64
#: Larger tensors are not followed: no output is read that has more elements.
MOST_ELEMENTS = 1 << 23

Origins = tuple[Places, list[int]]


def origins_of(graph: GraphView, tensor: int) -> Origins:
    """Return for each element of a tensor the number of the joined tensor that it comes from, flat, and these tensors.

    A tensor that nothing joins is its own only origin.
    """
    return _origins(graph, tensor, 0, {})


def _origins(graph: GraphView, tensor: int, depth: int, known: dict[int, Origins]) -> Origins:
    if tensor not in known:
        known[tensor] = _find(graph, tensor, depth, known)
    return known[tensor]


def _find(graph: GraphView, tensor: int, depth: int, known: dict[int, Origins]) -> Origins:
    count = math.prod(graph.tensors[tensor].shape)
    if depth and count > MOST_ELEMENTS:
        return np.zeros(0, np.int64), [tensor]
    whole = np.zeros(count, np.int64), [tensor]
    maker = graph.maker(tensor)
    if maker is None or depth == _MOST_DEPTH or not maker.inputs or min(graph.tensors[tensor].shape, default=1) < 1:
        return whole
    if maker.builtin in ("CONCATENATION", "PACK"):
        return _join(graph, maker, tensor, depth, known) or whole
    source = maker.inputs[0]
    if maker.builtin not in _KEEPING and maker.builtin != "TRANSPOSE":
        return whole
    labels, origins = _origins(graph, source, depth + 1, known)
    if len(origins) < 2 or len(labels) != len(whole[0]):
        return whole
    if maker.builtin in _KEEPING:
        return labels, origins
    order = graph.constant(maker.inputs[1]) if len(maker.inputs) > 1 else None
    shape = graph.tensors[source].shape
    if order is None or sorted(order.tolist()) != list(range(len(shape))):
        return whole
    return labels.reshape(shape).transpose(order.tolist()).reshape(-1), origins


def _join(graph: GraphView, op: OperatorView, tensor: int, depth: int, known: dict[int, Origins]) -> Origins | None:
    """Return the labels of what the operator joins; None if shapes do not show them."""
    axis = 0 if op.options is None else int(op.options.get("axis") or 0)
    pieces: list[Places] = []
    origins: list[int] = []
    for source in op.inputs:
        labels, below = _origins(graph, source, depth + 1, known)
        if len(below) < 2 and source in origins:
            labels, below = np.full_like(labels, origins.index(source) - len(origins)), []
        if len(labels) != math.prod(graph.tensors[source].shape):
            return None
        pieces.append((labels + len(origins)).reshape(graph.tensors[source].shape))
        origins += below
    try:
        whole = np.concatenate(pieces, axis) if op.builtin == "CONCATENATION" else np.stack(pieces, axis)
    except ValueError:
        return None
    return (whole.reshape(-1), origins) if whole.shape == graph.tensors[tensor].shape else None


#: More joined tensors than these are no parts with meanings of their own.
MOST_PARTS = 32
#: Coordinates of a box.
CORNERS = 4
#: Operators that decide by their operands, whose results are positions or jump where operands hardly move; these are
#: the positions of the operands by which they are judged.
DECIDING = {
    "TFLite_Detection_PostProcess": (0, 1),
    "NON_MAX_SUPPRESSION_V4": (0, 1),
    "NON_MAX_SUPPRESSION_V5": (0, 1),
    "ARG_MAX": (0,),
    "ARG_MIN": (0,),
}
#: Operators whose results are probabilities, and those that keep them so.
_SQUASHING = frozenset({"LOGISTIC", "SOFTMAX"})
_PASSING = frozenset(
    {
        "RESHAPE",
        "SQUEEZE",
        "EXPAND_DIMS",
        "TRANSPOSE",
        "SLICE",
        "STRIDED_SLICE",
        "SPLIT",
        "SPLIT_V",
        "GATHER",
        "GATHER_ND",
        "UNPACK",
        "QUANTIZE",
        "DEQUANTIZE",
        "REDUCE_MAX",
    }
)
_ALL_OF = frozenset({"CONCATENATION", "PACK", "MUL", "MAXIMUM", "MINIMUM"})


@dataclass(frozen=True, slots=True, eq=False)
class LayoutGroup:
    """Channels of a judged tensor with one meaning.

    `output` is the position of the tensor among those that are judged; `places` [C, N] are flat indices of its elements
    by channel and anchor. `origins` are the tensors that they come from; `is_scores` is True if these are
    probabilities. `judge` is the position of the group whose scores decide whether its anchors are read, None if there
    is none.
    """

    output: int
    tensor: int
    places: Places
    origins: tuple[int, ...]
    is_scores: bool
    judge: int | None = None

    @property
    def anchors(self) -> int:
        """The number of anchors."""
        return int(self.places.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class OutputLayout:
    """The tensors by which a model is judged, and their groups of channels in order."""

    tensors: tuple[int, ...]
    groups: tuple[LayoutGroup, ...]

    @property
    def is_joint(self) -> bool:
        """True if one of the tensors holds several groups."""
        return len(self.groups) > len(self.tensors)

    @property
    def is_plain(self) -> bool:
        """True if there is one tensor with one meaning."""
        return len(self.groups) == 1


def layout_of(graph: GraphView) -> OutputLayout:
    """Return the layout of a graph's outputs; tensors without float elements are left out unless all are."""
    deciding = list(dict.fromkeys(t for output in graph.outputs for t in _deciding(graph, output)))
    floats = [t for t in deciding if graph.tensors[t].type == TensorType.FLOAT32]
    tensors = tuple(floats or deciding[:1])
    groups = [group for place, tensor in enumerate(tensors) for group in merge(groups_of(graph, place, tensor))]
    return OutputLayout(tensors, tuple(replace(group, judge=_judge(groups, group)) for group in groups))


def _deciding(graph: GraphView, output: int) -> Sequence[int]:
    """Return the tensors by which an output is judged: itself, or the operands of the operator that decides it."""
    maker = graph.maker(output)
    positions = () if maker is None else DECIDING.get(maker.name, ())
    operands = [maker.inputs[p] for p in positions if maker is not None and p < len(maker.inputs)]
    computed = [t for t in operands if t >= 0 and (graph.maker(t) is not None or t in graph.inputs)]
    return computed or [output]


def groups_of(graph: GraphView, output: int, tensor: int) -> list[LayoutGroup]:
    """Return the groups of one tensor; it is one group if nothing shows more."""
    shape = tuple(n for n in graph.tensors[tensor].shape if n != 1) or (1,)
    if min(shape) < 1:
        return [LayoutGroup(output, tensor, np.zeros((1, 0), np.int64), (tensor,), is_scores=False)]
    if math.prod(shape) > MOST_ELEMENTS:
        return [
            LayoutGroup(
                output, tensor, np.arange(math.prod(shape))[None], (tensor,), is_scores=is_scores(graph, tensor)
            )
        ]
    labels, origins = origins_of(graph, tensor)
    if not 2 <= len(origins) <= MOST_PARTS:
        origins, labels = [tensor], np.zeros_like(labels)
    scores = [is_scores(graph, origin) for origin in origins]
    places = np.arange(len(labels)).reshape(shape)
    for axis in _likely_axes(labels.reshape(shape)):
        by_channel = np.moveaxis(places, axis, 0).reshape(shape[axis], -1)
        channels = _equal_rows(labels[by_channel])
        inside = [sorted(set(labels[by_channel[group]].reshape(-1).tolist())) for group in channels]
        if len(channels) <= len(origins) and all(len({scores[k] for k in kinds}) == 1 for kinds in inside):
            return [
                LayoutGroup(output, tensor, by_channel[group], tuple(origins[k] for k in kinds), scores[kinds[0]])
                for group, kinds in zip(channels, inside, strict=True)
            ]
    return [
        LayoutGroup(output, tensor, np.flatnonzero(labels == k)[None], (origin,), scores[k])
        for k, origin in enumerate(origins)
    ]


def input_size(graph: GraphView) -> tuple[int, int]:
    """Return the width and height of the first input that is a picture; 1 and 1 if none is."""
    for tensor in graph.inputs:
        shape = graph.tensors[tensor].shape
        if len(shape) == 4:
            return (shape[3], shape[2]) if shape[1] in (1, 3, 4) and shape[3] not in (1, 3, 4) else (shape[2], shape[1])
    return 1, 1


def merge(groups: Sequence[LayoutGroup]) -> list[LayoutGroup]:
    """Return the groups of one tensor with neighbours merged: scores, and coordinates that make up one box."""
    found: list[LayoutGroup] = []
    for group in groups:
        last = found[-1] if found else None
        if last is not None and last.is_scores == group.is_scores and last.anchors == group.anchors:
            channels = len(last.places) + len(group.places)
            if group.is_scores or channels <= CORNERS:
                places, origins = np.concatenate([last.places, group.places]), (*last.origins, *group.origins)
                found[-1] = replace(last, places=places, origins=tuple(dict.fromkeys(origins)))
                continue
        found.append(group)
    return found


def _likely_axes(labels: Places) -> list[int]:
    """Return the dimensions of a tensor in the order in which they are likely to be channels.

    Of two dimensions, the shorter one is. Grids have channels where tensors are joined, or last.
    """
    axes = sorted(range(labels.ndim), key=lambda axis: (labels.shape[axis], -axis))
    if labels.ndim < 3:
        return axes
    joined = [axis for axis in axes if (np.diff(labels, axis=axis) != 0).any()]
    return [*joined, *(axis for axis in reversed(range(labels.ndim)) if axis not in joined)]


def _equal_rows(labels: Places) -> list[Places]:
    """Return runs of neighbouring rows with the same labels."""
    changes = np.flatnonzero((labels[1:] != labels[:-1]).any(axis=1)) + 1
    return np.split(np.arange(len(labels)), changes)


def is_scores(graph: GraphView, tensor: int) -> bool:
    """Return whether a tensor holds probabilities: the results of LOGISTIC or SOFTMAX, moved or multiplied."""
    seen, left = set[int](), [tensor]
    while left:
        tensor = left.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        maker = graph.maker(tensor)
        if maker is None or not maker.inputs:
            return False
        if maker.builtin in _SQUASHING:
            continue
        if maker.builtin in _PASSING:
            left.append(maker.inputs[1 if maker.builtin == "SPLIT" and len(maker.inputs) > 1 else 0])
        elif maker.builtin in _ALL_OF:
            left += maker.inputs
        else:
            return False
    return True


def _judge(groups: Sequence[LayoutGroup], group: LayoutGroup) -> int | None:
    """Return the position of the scores of a group's anchors: in the same output, or else in another."""
    if group.is_scores or group.anchors < 2:
        return None
    known = [k for k, other in enumerate(groups) if other.is_scores and other.anchors == group.anchors]
    same = [k for k in known if groups[k].output == group.output]
    return next(iter(same or known), None)
