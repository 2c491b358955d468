"""The picture of a model: one SVG in a frame that scrolls, with search, zoom, colourings, mini-map and a panel."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from tflq.escaping import shown
from tflq.face.report.graph.colouring import Colouring
from tflq.face.report.graph.layered import BOX, place
from tflq.face.report.graph.network import Arrow, Box, Network, network, tensor_type
from tflq.face.report.html.page import fill
from tflq.face.report.html.parts import text
from tflq.model.ir import Model

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
