"""Colourings of a picture, panels beside it, and figures of one run.

Colourings of a picture: a shade and a text for every operator, and a legend that explains the shades.

Panels beside the picture: each operator's operands, options, constants and weights, and what a page adds.

Figures of the values of one run: histograms with the ends of their types, and operators coloured by clipping.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from tflq.comparison.inspection.operators import Inspection, OperatorFacts, TensorFacts
from tflq.errors import TflqError
from tflq.face.report.html.charts import LEVELS, distribution, line
from tflq.face.report.html.page import details, facts, figure, listing, paragraph, text, together
from tflq.face.report.wording import brief_name, short, span, stage_text
from tflq.model.ir import Model, view
from tflq.typing import Array

#: Largest by smallest value beyond which a scale is logarithmic.
_WIDE = 50.0


@dataclass(frozen=True, slots=True)
class Mark:
    """The shade (a class of the style sheet) and the text of one operator; `value` is the number behind it, if any."""

    shade: str
    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Colouring:
    """One thing to colour operators by: its name with its unit, marks by operator, and the legend (shade, meaning)."""

    name: str
    marks: Mapping[int, Mark]
    legend: tuple[tuple[str, str], ...]


def scale(
    name: str, values: Mapping[int, float], unit: str, *, hue: str = "hot", texts: Mapping[int, str] | None = None
) -> Colouring:
    """Return shades of one hue by magnitude, from 0 (no colour) to the largest. All infinite values share one shade.

    Args:
        name: What the numbers are, as in "largest difference".
        values: By operator; at least 0.
        unit: Of the numbers, "" where they have none.
        hue: "hot" where more is worse, "cool" where it is only more.
        texts: A box's text, if it is not the number and its unit.
    """
    said = texts or {}
    finite = [v for v in values.values() if 0 < v < math.inf]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    logarithmic = low > 0 and high / low > _WIDE

    def level(value: float) -> int:
        if not value or math.isnan(value):
            return 0
        if value >= high or high == low:
            return LEVELS
        share = math.log(value / low) / math.log(high / low) if logarithmic else value / high
        return min(LEVELS, 1 + int(share * LEVELS))

    def bound(number: int) -> float:
        share = number / LEVELS
        return low * (high / low) ** share if logarithmic else high * share

    def measured(value: float) -> str:
        return f"{short(value)} {unit}".rstrip()

    marks = {
        op: Mark(f"{hue}{level(v)}" if level(v) else "clear", said.get(op, measured(v)), v) for op, v in values.items()
    }
    legend = [("clear", measured(0))] if any(not v for v in values.values()) else []
    if len(set(finite)) == 1:
        legend.append((f"{hue}{LEVELS}", measured(high)))
    elif finite:
        legend += [(f"{hue}{n}", f"to {measured(bound(n))}") for n in range(1, LEVELS + 1)]
    return Colouring(f"{name}, {unit}" if unit else name, marks, tuple(legend))


def ladder(
    name: str, values: Mapping[int, float], unit: str, bounds: Sequence[float], texts: Mapping[int, str]
) -> Colouring:
    """Return shades by fixed bounds, so that pages can be compared: the fullest below the first, none from the last on.

    Args:
        name: What the numbers are.
        values: By operator; less is worse.
        unit: Of the numbers.
        bounds: LEVELS numbers, ascending.
        texts: Texts of the boxes.
    """
    shades = [*(f"hot{LEVELS - n}" for n in range(LEVELS)), "clear"]
    said = [f"below {bounds[0]:g} {unit}"]
    said += [f"{low:g} to {high:g} {unit}" for low, high in pairwise(bounds)]
    said += [f"{bounds[-1]:g} {unit} and more"]
    marks = {op: Mark(shades[bisect_right(bounds, value)], texts[op], value) for op, value in values.items()}
    return Colouring(f"{name}, {unit}", marks, tuple(zip(shades, said, strict=True)))


def states(name: str, values: Mapping[int, tuple[str, str]]) -> Colouring:
    """Return a colouring by named states: values are (shade, text) by operator; the legend has those that occur."""
    legend = dict.fromkeys(values.values())
    return Colouring(name, {op: Mark(shade, text) for op, (shade, text) in values.items()}, tuple(legend))


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


#: Values by tensor index.
Values = Mapping[int, Array]


def activation_colourings(inspection: Inspection, values: Values) -> tuple[Colouring, ...]:
    """Return colourings of operators by the share of clipped results, and by the unused part of their type's range."""
    clipped: dict[int, float] = {}
    unused: dict[int, float] = {}
    for operator in inspection.operators:
        for tensor in operator.outputs:
            limits = _limits(inspection, tensor, values)
            if limits is None:
                continue
            value = values[tensor]
            share = 100 * sum(clip_ends(inspection.tensors[tensor], value)) / value.size
            spread = (float(value.max()) - float(value.min())) / (limits[1] - limits[0])
            clipped[operator.index] = max(share, clipped.get(operator.index, 0.0))
            unused[operator.index] = max(100 * (1 - spread), unused.get(operator.index, 0.0))
    texts = {op: f"{share:.3g} % clipped" if share else "none clipped" for op, share in clipped.items()}
    rest = {op: f"{share:.3g} % of range unused" for op, share in unused.items()}
    return (
        scale("results at the end of their type", clipped, "%", texts=texts),
        scale("unused part of the type's range", unused, "%", hue="cool", texts=rest),
    )


def _limits(inspection: Inspection, tensor: int, values: Values) -> tuple[float, float] | None:
    """Return the ends of a quantized activation's type; None if its values are unknown or empty."""
    if not (0 <= tensor < len(inspection.tensors) and inspection.tensors[tensor].scale and tensor in values):
        return None
    value = values[tensor]
    if value.dtype.kind not in "iu" or value.dtype.itemsize > 2 or not value.size:
        return None
    info = np.iinfo(value.dtype)
    return float(info.min), float(info.max)


def clip_ends(tensor: TensorFacts, value: Array) -> tuple[int, int]:
    """Return the numbers of elements at the lowest and the highest code; 0 for the lowest if it is the zero point."""
    info = np.iinfo(value.dtype)
    zero = tensor.zero_point[0] if tensor.zero_point else 0
    low = 0 if zero == info.min else int(np.count_nonzero(value == info.min))
    return low, int(np.count_nonzero(value == info.max))


def tensor_figures(inspection: Inspection, tensors: tuple[int, ...], values: Values) -> list[Markup]:
    """Return a histogram of each of these tensors, with its range."""
    return list(_figures(inspection, tensors, values))


def _figures(inspection: Inspection, tensors: tuple[int, ...], values: Values) -> Iterator[Markup]:
    for tensor in tensors:
        value = values.get(tensor)
        if value is None or value.dtype.kind not in "iuf" or not 0 <= tensor < len(inspection.tensors):
            continue
        facts = inspection.tensors[tensor]
        limits = _limits(inspection, tensor, values)
        name = brief_name(facts.name)
        unit = f"{facts.type} codes" if limits is not None else f"{facts.type} values"
        low_is_zero = limits is not None and bool(facts.zero_point) and facts.zero_point[0] == limits[0]
        chart = distribution(value, f"tensor {tensor} {name}", unit, limits, (not low_is_zero, True))
        yield figure(chart, (f"tensor {tensor} ", name, _range_text(facts, value)))


def _range_text(facts: TensorFacts, value: Array) -> str:
    numbers = value[np.isfinite(value)] if value.dtype.kind == "f" else value
    if not numbers.size:
        return ""
    low, high = float(numbers.min()), float(numbers.max())
    lost = f", {value.size - numbers.size:,} not finite" if numbers.size < value.size else ""
    if len(facts.scale) != 1 or value.dtype.kind == "f":
        return f": {short(low)} to {short(high)}{lost}"
    zero = facts.zero_point[0] if facts.zero_point else 0
    real = [short(facts.scale[0] * (code - zero)) for code in (low, high)]
    ends = clip_ends(facts, value) if value.dtype.itemsize <= 2 else (0, 0)
    return f": real values {real[0]} to {real[1]}, {sum(ends):,} of {value.size:,} clipped"
