"""Panels beside the picture: each operator's operands, options, constants and weights, and what a page adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
from markupsafe import Markup

from tflq.comparison.inspection.operators import Inspection, OperatorFacts, TensorFacts
from tflq.errors import TflqError
from tflq.face.report.html.charts import distribution, line
from tflq.face.report.html.parts import details, facts, figure, listing, paragraph, text, together
from tflq.face.report.names import brief_name
from tflq.face.report.numbers import short
from tflq.face.report.stages import span, stage_text
from tflq.model.ir import Model, view
from tflq.typing import Array

#: A page's additions about an operator, by its index.
Extra = Callable[[int], Markup]

#: Constants with fewer elements are listed with their values instead of drawn; larger ones are drawn.
_DRAWN = 32
#: Elements of constants, over the whole model, beyond which the rest is not drawn: drawing must stay quick.
_MOST_ELEMENTS = 50_000_000
#: Characters of an option's value, and output stages with many channels that are listed.
_OPTION, _CHANNELS = 80, 8


def nothing(_operator: int) -> Markup:
    """Return no addition."""
    return Markup("")


def operator_panels(model: Model, inspection: Inspection, extra: Extra = nothing) -> dict[int, Markup]:
    """Return a panel for every operator of the first subgraph, by index; each begins with the operator's `extra`."""
    left = _MOST_ELEMENTS
    panels = {}
    for operator in inspection.operators:
        weights = list(_constants(model, operator))
        left -= sum(value.size for _, value in weights)
        drawn = weights if left >= 0 else []
        panels[operator.index] = _panel(inspection, operator, drawn, extra(operator.index))
    return panels


def _constants(model: Model, operator: OperatorFacts) -> Iterator[tuple[int, Array]]:
    """Yield the numeric constants that are large enough to draw, with their tensors."""
    graph = view(model)
    for tensor in dict.fromkeys(operator.inputs):
        value = None
        with suppress(TflqError):  # a panel shows what can be read
            value = graph.constant(tensor)
        if value is not None and value.dtype.kind in "iuf" and value.size >= _DRAWN:
            yield tensor, value


def _panel(inspection: Inspection, operator: OperatorFacts, weights: list[tuple[int, Array]], extra: Markup) -> Markup:
    return together(
        Markup("<h3>{} {}</h3>").format(operator.index, text(operator.op)),
        extra,
        facts(
            [
                *_tensors(inspection, operator),
                ("MACs", f"{operator.macs:,}" if operator.macs else ""),
                (f"under {inspection.profile}", operator.reason or str(operator.promise or "")),
                ("version", str(operator.version)),
                *((name.replace("_", " "), _option(value)) for name, value in operator.options),
            ]
        ),
        _stages(operator),
        *(weight_figure(inspection.tensors[tensor], value) for tensor, value in weights),
    )


def _option(value: object) -> str:
    said = str(getattr(value, "label", value))
    return said if len(said) <= _OPTION else said[: _OPTION - 1] + "…"


def _tensors(inspection: Inspection, operator: OperatorFacts) -> Iterator[tuple[str, Markup]]:
    for role, indices in (("in", operator.inputs), ("out", operator.outputs)):
        for position, index in enumerate(indices):
            if not 0 <= index < len(inspection.tensors):
                yield f"{role} {position}", text("absent")
                continue
            tensor = inspection.tensors[index]
            said = f"{tensor.type} {list(tensor.shape)}" + (" constant" if tensor.kind == "constant" else "")
            if tensor.scale:
                said += f", scale {scale_text(tensor)}, zero point {span(tensor.zero_point)}"
            name = Markup("{} {}<small>{}</small>").format(index, text(brief_name(tensor.name)), text(said))
            yield f"{role} {position}", name


def scale_text(tensor: TensorFacts) -> str:
    """Return the scale, or the range of several and their axis."""
    if len(tensor.scale) <= 1:
        return span([float(f"{s:.6g}") for s in tensor.scale])
    low, high = min(tensor.scale), max(tensor.scale)
    return f"{low:.3g} to {high:.3g} ({len(tensor.scale)} along axis {tensor.quantized_dimension})"


def _stages(operator: OperatorFacts) -> Markup:
    if operator.constants is None or not operator.constants.stages:
        return Markup("")
    parts: list[Markup] = []
    for stage in operator.constants.stages:
        parts.append(paragraph(stage_text(stage)))
        count = len(stage.real)
        if count > 1:
            parts.append(listing(stage_text(stage, channel) for channel in range(min(count, _CHANNELS))))
            if count > _CHANNELS:
                parts.append(paragraph(f"and {count - _CHANNELS} more channels", "soft"))
    return details("Output stage", *parts)


def weight_figure(tensor: TensorFacts, value: Array) -> Markup:
    """Return a histogram of a constant's values; codes are drawn over the range of their type, clipped ones marked."""
    codes = value.dtype.kind in "iu" and value.dtype.itemsize <= 2
    limits = (float(np.iinfo(value.dtype).min), float(np.iinfo(value.dtype).max)) if codes else None
    if tensor.type == "int4":
        limits = (-8.0, 7.0)
    name = brief_name(tensor.name)
    unit = f"{tensor.type} codes" if codes else f"{tensor.type} values"
    chart = distribution(value, f"tensor {tensor.index} {name}", unit, limits)
    said = ""
    if codes and len(tensor.scale) == 1 and tensor.zero_point:
        low, high = (tensor.scale[0] * (float(v) - tensor.zero_point[0]) for v in (value.min(), value.max()))
        said += f": real values {short(low)} to {short(high)}"
    elif not codes:
        finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value
        if finite.size:
            said += f": {short(float(finite.min()))} to {short(float(finite.max()))}"
    parts = [figure(chart, (f"constant {tensor.index} ", name, said))]
    if len(tensor.scale) > 1:
        parts.append(_channel_ranges(tensor, value))
    return together(*parts)


def _channel_ranges(tensor: TensorFacts, value: Array) -> Markup:
    """Return a chart of the largest real weight of each channel: how much one scale for all of them would waste."""
    axis = tensor.quantized_dimension
    if not (0 <= axis < value.ndim and value.shape[axis] == len(tensor.scale)):
        return Markup("")
    others = tuple(i for i in range(value.ndim) if i != axis)
    largest = np.abs(value.astype(np.float64)).max(axis=others) * np.array(tensor.scale)
    along = ("channel 0", f"channel {len(tensor.scale) - 1}")
    chart = line(
        largest.tolist(),
        f"largest weight of each channel, tensor {tensor.index}",
        short(float(largest.max())),
        along,
        "largest |weight|, real",
    )
    ratio = largest.max() / largest[largest > 0].min() if (largest > 0).any() else 1.0
    return figure(
        chart, f"range of each of {len(tensor.scale)} channels; the widest is {short(float(ratio))} times the narrowest"
    )
