"""Contractions of floats with 8-bit weights, quantized on the way, in plain NumPy: zero points, scales, roundings.

A row of a FULLY_CONNECTED, or an image of a convolution, is quantized by itself: x = scale * (code - zero point). The
form without a mistake must give the profile's bits, otherwise no mistake is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tflq.comparison.inspection.parts import parts_of
from tflq.diagnosis.mistakes.device import Device, Mistaken
from tflq.diagnosis.mistakes.taps import LAYOUTS, accumulate
from tflq.engine.api.part import Part
from tflq.engine.kernels.families.activation import LIMITS
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.numerics.dynamic_range import Rows, quantize_rows
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

_FAR = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """How a device quantizes and scales; without arguments, the right way."""

    rows: Callable[[Rows], Rows] = lambda rows: rows
    outside: Callable[[Array], Array] = lambda zero: np.zeros_like(zero)  # of taps beyond the image, by row
    scale: Callable[[Array], Array] = lambda scale: scale
    other_form: bool = False  # symmetric rows in place of asymmetric ones, and vice versa


def _without_zero_point(rows: Rows) -> Rows:
    return replace(rows, zero_point=np.zeros_like(rows.zero_point))


def _with_the_wrong_sign(rows: Rows) -> Rows:
    return replace(rows, zero_point=-rows.zero_point)


def _first_row(rows: Rows) -> Rows:
    first = np.zeros(len(rows.scale), np.intp)
    return replace(rows, scale=rows.scale[first], zero_point=rows.zero_point[first])


_READINGS: dict[str, _Reading] = {
    "zero point of the source ignored: its term is missing in the sums": _Reading(_without_zero_point),
    "zero point of the source ignored, padding stored as it": _Reading(_without_zero_point, lambda zero: zero),
    "zero point of the source with the wrong sign": _Reading(_with_the_wrong_sign),
    "padding of the source stored as code 0": _Reading(outside=lambda zero: -zero),
    "scale and zero point of the first row or image for all": _Reading(_first_row),
    "scales of channels: the first for all": _Reading(scale=lambda s: np.full_like(s, s[0])),
    "scales of channels: the last for all": _Reading(scale=lambda s: np.full_like(s, s[-1])),
    "scales of channels: each the next one's": _Reading(scale=lambda s: np.roll(s, -1)),
    "scales of channels: each the previous one's": _Reading(scale=lambda s: np.roll(s, 1)),
    "source quantized symmetrically in place of asymmetrically, or vice versa": _Reading(other_form=True),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Hybrid:
    """The operator in this form."""

    window: Window
    weights: Array  # codes (O, KH, KW, C / groups)
    scale: Array  # float32, O or 1
    bias: Array | None
    by_row: bool
    asymmetric: bool
    limits: tuple[float, float]
    is_product_first: bool  # sums times the product of the scales, else times one scale after the other

    def results(self, x: Array, shape: tuple[int, ...], reading: _Reading) -> Array:
        """Return the float results."""
        image = x.reshape(-1, 1, 1, self.weights[0].size) if self.by_row else x
        rows = reading.rows(quantize_rows(image.reshape(len(image), -1), self.asymmetric != reading.other_form))
        zero = rows.zero_point.astype(np.int64)
        values = rows.codes.reshape(image.shape).astype(np.int32) - zero.astype(np.int32)[:, None, None, None]
        sums = np.zeros((len(image), self.window.out_h, self.window.out_w, len(self.weights)), np.int64)
        outside = reading.outside(quantize_rows(image.reshape(len(image), -1), self.asymmetric).zero_point)
        for k in range(len(image)):
            accumulate(values[k : k + 1], self.weights, self.window, int(outside[k]), -_FAR, _FAR, sums[k : k + 1])
        total, scale = sums.astype(np.float32), reading.scale(self.scale).astype(np.float32)
        by_image = rows.scale[:, None, None, None]
        total = total * (by_image * scale) if self.is_product_first else (total * scale) * by_image
        if self.bias is not None:
            total = total + self.bias
        low, high = (np.float32(limit) for limit in self.limits)
        return np.clip(total, low, high).astype(np.float32).reshape(shape)


def mistaken_dynamic_ranges(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield mistakes in quantizing and scaling a contraction of floats with 8-bit weights."""
    hybrid = _right_hybrid(alone, profile)
    if hybrid is not None:
        for name, reading in _READINGS.items():
            yield name, _device(hybrid, reading)


def _device(hybrid: _Hybrid, reading: _Reading) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        return {tensor: hybrid.results(alone.inputs[alone.op.inputs[0]], dumped.shape, reading)}

    return device


def _right_hybrid(alone: Part, profile: Profile) -> _Hybrid | None:
    """Return the form that gives the profile's bits; None if none does."""
    graph, operator = alone.graph, alone.op
    name = operator.builtin
    if name not in LAYOUTS or len(alone.got) != 1 or operator.inputs[0] not in alone.inputs:
        return None
    spec = graph.tensors[operator.inputs[1]]
    weights, x = graph.constant(operator.inputs[1]), alone.inputs[operator.inputs[0]]
    if not isinstance(spec.type, TensorType) or weights is None or CARRIER[spec.type].itemsize > 1:
        return None
    q = spec.quantization
    if x.dtype != np.float32 or weights.dtype.kind not in "iu" or q is None or not q.scale.size or not x.size:
        return None
    (tensor,) = alone.got
    right = alone.run(alone.plan(profile))[tensor]
    for form in _forms(alone, profile, weights, q.scale):
        try:
            if np.array_equal(form.results(x, right.shape, _Reading()), right):
                return form
        except (TflqError, ValueError):
            continue
    return None


def _forms(alone: Part, profile: Profile, weights: Array, scale: Array) -> Iterator[_Hybrid]:
    operator = alone.op
    prepared = alone.plan(profile).steps[0].prepared
    by_row = operator.builtin == "FULLY_CONNECTED"
    window = None if prepared is None else next((p.value for p in parts_of(prepared.data, Window)), None)
    if window is None and not by_row:
        return
    options = {} if operator.options is None else operator.options.fields
    bias = alone.graph.constant(operator.inputs[2]) if len(operator.inputs) > 2 and operator.inputs[2] >= 0 else None
    limits = LIMITS.get(int(options.get("fused_activation_function") or 0), (None, None))
    ends = tuple(end if limit is None else float(limit) for limit, end in zip(limits, (-np.inf, np.inf), strict=True))
    laid = LAYOUTS[operator.builtin](weights.view(np.int8)).astype(np.int32)
    for asymmetric in (True, False):
        for first in (True, False):
            yield _Hybrid(
                window or Window.of_one_tap(1, 1), laid, scale, bias, by_row, asymmetric, (ends[0], ends[1]), first
            )
