"""A converted model against its source: the values that both compute of the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.model.ir import Model, input_names, output_names, view
from tflq.typing import Array

#: Largest difference that rounding explains, as a share of the largest value: wrong layouts differ by its size.
_ROUNDING = 0.01


def wrong_text(model: Model, given: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
    """Return how far float outputs are from those of the source; "" if rounding explains that.

    It is "" also if they cannot be compared. Arrays of three axes or more may have their channels moved from axis 1 to
    the end.
    """
    graph = view(model)
    inputs = _by_tensor(given, graph.inputs, input_names(model))
    outputs = _by_tensor(expected, graph.outputs, output_names(model))
    fitting = {t: [form for form in _forms(v) if form.shape == graph.tensors[t].shape] for t, v in inputs.items()}
    if not all(fitting.values()):
        return ""
    texts = [
        _wrong(model, {tensor: forms[which] for tensor, forms in fitting.items()}, outputs)
        for which in ((0, -1) if any(len(forms) > 1 for forms in fitting.values()) else (0,))
    ]
    return "" if "" in texts else texts[0]


def _wrong(model: Model, values: Mapping[int, Array], outputs: Mapping[int, Array]) -> str:
    try:
        found = run(make_plan(model, by_name("litert-ref")), values).values
    except TflqError:
        return ""
    for tensor, value in outputs.items():
        largest = float(np.abs(value).max(initial=0)) if value.dtype.kind == "f" else np.inf
        far = [_distance(found[tensor], form) for form in _forms(value) if form.shape == found[tensor].shape]
        if far and not min(far) <= _ROUNDING * largest:
            name = view(model).tensors[tensor].name or "output"
            return f"of random inputs, {name} differs by {min(far):.3g}, and its largest value is {largest:.3g}"
    return ""


def _by_tensor(values: Mapping[str, Array], tensors: Sequence[int], names: Sequence[str]) -> dict[int, Array]:
    """Return values by tensor: by name if all names are known, else in order."""
    if set(values) == set(names):
        return {tensor: values[name] for tensor, name in zip(tensors, names, strict=True)}
    return dict(zip(tensors, values.values(), strict=False))


def _forms(value: Array) -> Sequence[Array]:
    """Return an array as it is, and with its channels at the end."""
    return (value,) if value.ndim < 3 else (value, np.moveaxis(value, 1, -1))


def _distance(one: Array, other: Array) -> float:
    """Return the largest difference; where both are NaN there is none."""
    if one.dtype.kind != "f":
        return 0.0
    with np.errstate(invalid="ignore"):
        far = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0, np.abs(one - other.astype(np.float64)))
    return float(far.max(initial=0))
