"""Figures of the values of one run: histograms with the ends of their types, and operators coloured by clipping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from markupsafe import Markup

from tflq.comparison.inspection.operators import Inspection, TensorFacts
from tflq.face.report.graph.colouring import Colouring, scale
from tflq.face.report.html.charts import distribution
from tflq.face.report.html.parts import figure
from tflq.face.report.names import brief_name
from tflq.face.report.numbers import short
from tflq.typing import Array

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
