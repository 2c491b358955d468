"""The picture of a model: one SVG, and what every page about a model has.

A model's first subgraph as boxes and arrows: its inputs, its operators in execution order, its outputs.

Places for the boxes of a directed graph: layers from top to bottom, few crossings, straight long arrows.

The method of Sugiyama, Tagawa and Toda (1981): boxes in layers by their longest path, bends where an arrow passes a
layer, an order within each layer by the mean place of the neighbours, then coordinates. Coordinates are least squares
under a smallest distance, which is isotonic regression (pool adjacent violators).

The picture of a model: one SVG in a frame that scrolls, with search, zoom, colourings, mini-map and a panel.

Colourings and sections that every page about one model has: MACs, promises, element types; memory over the steps.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup, escape

from tflq.comparison.inspection.operators import Inspection, OperatorFacts, inspect, live_bytes
from tflq.engine.api.files import Source, subject
from tflq.engine.profiles import Profile
from tflq.face.report.graph.colouring import Colouring, Extra, nothing, operator_panels, scale, states
from tflq.face.report.html.charts import line
from tflq.face.report.html.page import figure, fill, section, text
from tflq.face.report.wording import bytes_text
from tflq.model.ir import GraphView, Model, TensorType, signed, view
from tflq.texts import shown


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


#: Width of a box and of a bend, and the smallest gap between two of a layer. Pixels.
BOX, BEND, GAP = 200.0, 14.0, 24.0
#: Passes down and up that order the layers, and that place their boxes.
_ORDERINGS, _PLACINGS = 12, 24
#: Bends that a picture may have; the longest arrows beyond these go straight to their end.
_MOST_BENDS = 20_000
#: How much more an arrow between two bends pulls than one between boxes: it shall be straight.
_STRAIGHTNESS = 6.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Centres of boxes by number as (x, layer), and for every arrow the bends between its ends, from top to bottom."""

    boxes: tuple[tuple[float, int], ...]
    bends: tuple[tuple[tuple[float, int], ...], ...]
    width: float
    layers: int


def place(count: int, arrows: Sequence[tuple[int, int]]) -> Placement:
    """Place boxes 0 to `count` - 1. Each arrow is (from, to) with from before to in an order that all arrows follow.

    `arrows` refer to boxes whose numbers are in topological order: from < to.
    """
    layer = _layers(count, arrows)
    chains = _chains(layer, arrows, count)
    above, below = _neighbours(chains, len(layer))
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for item, row in enumerate(layer):
        rows[row].append(item)
    _order(rows, above, below)
    x = _coordinates(rows, above, below, count)
    left = min((x[i] - _width(i, count) / 2 for i in range(len(layer))), default=0.0)
    right = max((x[i] + _width(i, count) / 2 for i in range(len(layer))), default=0.0)
    points = [(x[i] - left, layer[i]) for i in range(len(layer))]
    bends = tuple(tuple(points[i] for i in chain[1:-1]) for chain in chains)
    return Placement(tuple(points[:count]), bends, right - left, len(rows))


def _layers(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """Return the longest path to each box; a box without a predecessor is put right above its first successor."""
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for start, end in arrows:
        into[end].append(start)
        out[start].append(end)
    layer = [0] * count
    for box in range(count):
        layer[box] = 1 + max((layer[source] for source in into[box]), default=-1)
    for box in range(count):
        if not into[box] and out[box]:
            layer[box] = min(layer[target] for target in out[box]) - 1
    return layer


def _chains(layer: list[int], arrows: Sequence[tuple[int, int]], count: int) -> list[list[int]]:
    """Return every arrow as its start, a bend in each layer between, and its end; append the bends to `layer`."""
    room = _MOST_BENDS
    chains: list[list[int]] = [[] for _ in arrows]
    for number in sorted(range(len(arrows)), key=lambda n: layer[arrows[n][1]] - layer[arrows[n][0]]):
        start, end = arrows[number]
        passed = range(layer[start] + 1, layer[end])
        bends = []
        if len(passed) <= room:
            room -= len(passed)
            bends = list(range(len(layer), len(layer) + len(passed)))
            layer.extend(passed)
        chains[number] = [start, *bends, end]
    return chains


def _neighbours(chains: Sequence[Sequence[int]], items: int) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(items)]
    below: list[list[int]] = [[] for _ in range(items)]
    for chain in chains:
        for upper, lower in itertools.pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    return above, below


def _order(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Sort each row by the mean position of its items' neighbours, downwards and upwards in turn."""
    for number in range(_ORDERINGS):
        ways = (rows[1:], above) if number % 2 == 0 else (rows[-2::-1], below)
        position = {item: float(i) for row in rows for i, item in enumerate(row)}
        for row in ways[0]:
            means = {i: fmean(position[n] for n in ways[1][i]) if ways[1][i] else position[i] for i in row}
            row.sort(key=means.__getitem__)
            position.update((item, float(i)) for i, item in enumerate(row))


def _coordinates(rows: list[list[int]], above: list[list[int]], below: list[list[int]], count: int) -> list[float]:
    x = [0.0] * len(above)
    for row in rows:
        _settle(row, dict.fromkeys(row, (0.0, 1.0)), x, count)
    for number in range(_PLACINGS):
        last = number >= _PLACINGS - 2
        for row in rows if number % 2 == 0 else reversed(rows):
            wishes = {}
            for item in row:
                sides = [*above[item], *below[item]] if last else above[item] if number % 2 == 0 else below[item]
                wishes[item] = _wish(item, sides or [item], x, count)
            _settle(row, wishes, x, count)
    return x


def _wish(item: int, neighbours: Sequence[int], x: Sequence[float], count: int) -> tuple[float, float]:
    """Return the best position of an item, the weighted mean of its neighbours, and its weight."""
    weights = [_STRAIGHTNESS if item >= count and n >= count else 1.0 for n in neighbours]
    total = sum(weights)
    return sum(w * x[n] for w, n in zip(weights, neighbours, strict=True)) / total, total


def _settle(row: Sequence[int], wishes: dict[int, tuple[float, float]], x: list[float], count: int) -> None:
    """Move a row's items as near to their wishes as the order and the gaps between them allow."""
    offsets, at = [], 0.0
    for position, item in enumerate(row):
        if position:
            at += (_width(row[position - 1], count) + _width(item, count)) / 2 + GAP
        offsets.append(at)
    blocks: list[list[float]] = []  # of items pushed together: mean, weight, number
    for item, offset in zip(row, offsets, strict=True):
        wish, weight = wishes[item]
        blocks.append([wish - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, heavy, number = blocks.pop()
            before = blocks[-1]
            before[0] = (before[0] * before[1] + mean * heavy) / (before[1] + heavy)
            before[1] += heavy
            before[2] += number
    settled = [mean for mean, _, number in blocks for _ in range(int(number))]
    for item, offset, mean in zip(row, offsets, settled, strict=True):
        x[item] = mean + offset


def _width(item: int, count: int) -> float:
    return BOX if item < count else BEND


#: Height of a box, from one layer to the next, and around the picture. Pixels.
_HEIGHT, _PITCH, _MARGIN = 42, 76, 16
#: Characters of a line in a box.
_ROOM = 20

_BOX = Markup(
    '<g class="box {shade}" data-box="{number}"{operator} data-find="{find}" transform="translate({x:.1f} {y:.1f})">'
    '<title>{title}</title><rect width="{width:.0f}" height="{height}" rx="7"/>{stripe}'
    '<text x="14" y="17">{label}</text><text class="value" x="14" y="33">{value}</text></g>'
)
_STRIPE = Markup('<path d="M7 0h-0a7 7 0 0 0-7 7v{0}a7 7 0 0 0 7 7z"/>').format(_HEIGHT - 14)
_OPERATOR = Markup(' data-op="{0}" id="box-{0}" role="button" tabindex="-1" aria-label="{1}"')


def model_picture(
    model: Model, colourings: Sequence[Colouring], panels: Mapping[int, Markup], focus: int | None = None
) -> Markup:
    """Draw a model's first subgraph.

    Args:
        model: The model.
        colourings: Figures to colour operators by; the first is shown at the start.
        panels: Description of each operator, by index.
        focus: The operator that is in view and described at the start; None for the first.
    """
    net = network(model)
    if not any(box.operator is not None for box in net.boxes):
        return Markup("")
    placed = place(len(net.boxes), [(arrow.start, arrow.end) for arrow in net.arrows])
    corners = [(x + _MARGIN - BOX / 2, layer * _PITCH + _MARGIN) for x, layer in placed.boxes]
    marks = colourings[0].marks if colourings else {}
    boxes = []
    for number, (box, (x, y)) in enumerate(zip(net.boxes, corners, strict=True)):
        mark = marks.get(box.operator) if box.operator is not None else None
        value = mark.text if mark else "" if box.operator is not None else _line(_names(net, box))
        boxes.append(_box(model, net, box, number, x, y, mark.shade if mark else "clear", value))
    arrows = [_arrow(model, net, arrow, corners, bends) for arrow, bends in zip(net.arrows, placed.bends, strict=True)]
    return fill(
        "picture.html",
        width=round(placed.width + 2 * _MARGIN),
        height=(placed.layers - 1) * _PITCH + _HEIGHT + 2 * _MARGIN,
        box=round(BOX),
        pitch=_PITCH,
        margin=_MARGIN,
        operators=sum(box.operator is not None for box in net.boxes),
        arrows=Markup("\n").join(arrows),
        boxes=Markup("\n").join(boxes),
        colourings=colourings,
        marks=escape(json.dumps([_plain(colouring) for colouring in colourings], separators=(",", ":"))),
        panels=sorted(panels.items()),
        focus=focus,
    )


def _plain(colouring: Colouring) -> dict[str, object]:
    return {"marks": {str(op): [mark.shade, shown(mark.text)] for op, mark in colouring.marks.items()}}


def _names(net: Network, box: Box) -> str:
    names = [net.tensor_names[t] for t in box.tensors if 0 <= t < len(net.tensor_names)]
    return names[0] if names else ""


def _line(value: str) -> str:
    """Return a text cut to the room in a box; of a long name the end is kept."""
    whole = shown(value)
    return whole if len(whole) <= _ROOM else "…" + whole[1 - _ROOM :]


def _box(model: Model, net: Network, box: Box, number: int, x: float, y: float, shade: str, value: str) -> Markup:
    label = shown(box.label if box.operator is None else f"{box.operator} {box.label}")
    tensors = [
        f"{shown(net.tensor_names[t])} {tensor_type(model, t)}" for t in box.tensors if 0 <= t < len(net.tensor_names)
    ]
    return _BOX.format(
        shade=shade if box.operator is not None else "edge",
        number=number,
        operator=_OPERATOR.format(box.operator, label) if box.operator is not None else "",
        find=" ".join([label, *tensors]).lower(),
        x=x,
        y=y,
        width=BOX,
        height=_HEIGHT,
        stripe=_STRIPE if box.operator is not None else "",
        title=text("\n".join([label, *tensors])),
        label=label if len(label) <= _ROOM else label[: _ROOM - 1] + "…",
        value=value,
    )


def _arrow(
    model: Model, net: Network, arrow: Arrow, corners: Sequence[tuple[float, float]], bends: Sequence[tuple[float, int]]
) -> Markup:
    (x, y), (end_x, end_y) = corners[arrow.start], corners[arrow.end]
    points = [
        (x + BOX / 2, y + _HEIGHT),
        *((bend + _MARGIN, layer * _PITCH + _MARGIN + _HEIGHT / 2) for bend, layer in bends),
        (end_x + BOX / 2, end_y),
    ]
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (y0 + y1) / 2
        path += (
            f"L{x1:.0f} {y1:.0f}"
            if abs(x0 - x1) < 1
            else f"C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1:.0f}"
        )
    name = f"{arrow.tensor} {shown(net.tensor_names[arrow.tensor])} {tensor_type(model, arrow.tensor)}"
    return Markup('<path class="arrow" d="{}"><title>tensor {}</title></path>').format(path, name)


_PROMISES = {"exact": "good", "exact on the same libm": "cool2", "close": "warning"}
#: Shades of element types; those that are not here are "unknown".
_TYPES = {"int8": "good", "uint8": "cool2", "int16": "cool4", "float32": "hot3", "float16": "hot2", "int32": "cool1"}


@dataclass(frozen=True, slots=True, eq=False)
class ModelView:
    """A model and its inspection: everything that pages draw and list of its operators."""

    model: Model
    inspection: Inspection

    @property
    def graph(self) -> GraphView:
        """View of the model's first subgraph."""
        return view(self.model)


def view_of(source: Source | Model, profile: str | Profile = "litert-ref", signature: str | None = None) -> ModelView:
    """Read a model and prepare a signature's operators under a profile: by default the first one's.

    Raises what `subject` and `inspect` raise.
    """
    return ModelView(signed(subject(source).model, signature)[0].model, inspect(source, profile, signature))


def graph_section(
    view: ModelView, colourings: Sequence[Colouring] = (), extra: Extra = nothing, focus: int | None = None
) -> Markup:
    """Draw the model, coloured by what the page is about first; `extra` is what the page adds to operators' panels."""
    every = [*colourings, *facts_of(view.inspection)]
    return model_picture(view.model, every, operator_panels(view.model, view.inspection, extra), focus)


def facts_of(inspection: Inspection) -> tuple[Colouring, ...]:
    """Return the colourings that need no run of the model."""
    macs = {operator.index: float(operator.macs) for operator in inspection.operators}
    total = inspection.macs or 1
    shares = {index: f"{value / total:.1%} of MACs" if value else "" for index, value in macs.items()}
    return (
        scale("multiply-accumulates", macs, "MACs", hue="cool", texts=shares),
        states(
            f"exactness under {inspection.profile}",
            {operator.index: _promise(operator) for operator in inspection.operators},
        ),
        states("element type of the result", {o.index: _type(inspection, o) for o in inspection.operators}),
    )


def _promise(operator: OperatorFacts) -> tuple[str, str]:
    if operator.promise is None:
        return "bad", "not supported"
    return _PROMISES.get(operator.promise.word, "unknown"), operator.promise.word


def _type(inspection: Inspection, operator: OperatorFacts) -> tuple[str, str]:
    outputs = [t for t in operator.outputs if 0 <= t < len(inspection.tensors)]
    kind = inspection.tensors[outputs[0]].type if outputs else "none"
    return _TYPES.get(kind, "unknown"), kind


def memory_section(model: Model) -> Markup:
    """Return a chart of the bytes of activations over the steps, with the operator at which most are held."""
    steps = live_bytes(model)
    if not steps:
        return Markup("")
    largest = max(steps)
    chart = line(
        steps,
        "bytes of activations held at each operator",
        bytes_text(largest),
        ("operator 0", f"operator {len(steps) - 1}"),
        "operators in execution order",
    )
    caption = (
        f"activations held while each operator runs; most at operator {steps.index(largest)}: {bytes_text(largest)}"
    )
    return section("memory", "Memory", figure(chart, caption))
