"""Mistakes on floats: narrow operands, hybrids, dequantized operators.

Contractions of floats with 8-bit weights, quantized on the way, in plain NumPy: zero points, scales, roundings.

A row of a FULLY_CONNECTED, or an image of a convolution, is quantized by itself: x = scale * (code - zero point). The
form without a mistake must give the profile's bits, otherwise no mistake is tried.

Dequantize, float operator, quantize: the arithmetic of runtimes without integer kernels.

Every hypothesis is a point of the grammar of float forms (`kernels/families/through_floats`).

Float operators with narrow weights: a device quantizes images by other groups, one scale per pixel or image.

A CONV_2D of one tap, without strides, is a FULLY_CONNECTED of pixels. Runtimes that run it as one quantize each pixel
(XNNPACK's qd8-f32-qc8w gemm in place of its igemm).

Float operators whose operands are rounded to a narrower float type: float16, bfloat16, and TF32 of tensor cores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from tflq.comparison.inspection.prepared import parts_of
from tflq.diagnosis.mistakes.device import Device, Mistaken, Under, computation
from tflq.diagnosis.mistakes.products import LAYOUTS, accumulate
from tflq.engine.api.many import Part
from tflq.engine.kernels.families.activation import LIMITS
from tflq.engine.kernels.families.reals import AS_CODES, CODES, PRECISIONS, QUOTIENTS, Floats
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.numerics.dynamic_range import QuantizedRows, quantize_rows
from tflq.engine.numerics.estimates import in_bfloat16, in_float16
from tflq.engine.numerics.rounding import ROUNDINGS
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.engine.profiles.file import with_rows
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, Model, OperatorCode, Record, TensorType, view
from tflq.model.surgery.tap import with_constant, with_operator, with_tensor
from tflq.typing import Array

_FAR = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """How a device quantizes and scales; without arguments, the right way."""

    rows: Callable[[QuantizedRows], QuantizedRows] = lambda rows: rows
    outside: Callable[[Array], Array] = lambda zero: np.zeros_like(zero)  # of taps beyond the image, by row
    scale: Callable[[Array], Array] = lambda scale: scale
    other_form: bool = False  # symmetric rows in place of asymmetric ones, and vice versa


def _without_zero_point(rows: QuantizedRows) -> QuantizedRows:
    return replace(rows, zero_point=np.zeros_like(rows.zero_point))


def _with_the_wrong_sign(rows: QuantizedRows) -> QuantizedRows:
    return replace(rows, zero_point=-rows.zero_point)


def _first_row(rows: QuantizedRows) -> QuantizedRows:
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


#: Operators whose results lie between input codes, which devices interpolate directly.
_BETWEEN_CODES = ("RESIZE_BILINEAR",)
#: Texts that quotients add to a name.
_ADDED = {
    "divided": "",
    "times reciprocal": ", times the output scale's reciprocal",
    "divided, zero point before rounding": ", the zero point added before the rounding",
    "times reciprocal, zero point before rounding": (
        ", times the output scale's reciprocal, the zero point added before the rounding"
    ),
}
#: Roundings that are combined with narrower floats.
_USUAL = ("half to even", "half away from zero")


def mistaken_floats(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield every way to compute the operator in floats, with every rounding; none if it has no form in floats."""
    if not _has_codes(alone):
        return
    alone.plan(in_floats(alone, profile, Floats()))  # refused here rather than by every point
    for point in _points(alone.op.builtin):
        yield name_of(point), Under(in_floats(alone, profile, point))


def in_floats(alone: Part, profile: Profile, point: Floats) -> Profile:
    """Return the profile that computes the operator at a point of the grammar."""
    return with_rows(profile, [{"op": alone.op.name, "floats": asdict(point)}])


def name_of(point: Floats) -> str:
    """Return a point in words."""
    where = " on codes" if point.reals == AS_CODES else ""
    return f"computed{where} in {point.precision}{_ADDED[point.quotient]}, rounded {point.rounding}"


def _points(op: str) -> Iterator[Floats]:
    if op in _BETWEEN_CODES:
        yield from (Floats(rounding=rounding, reals=AS_CODES) for rounding in ROUNDINGS)
    for precision in PRECISIONS:
        for rounding in ROUNDINGS if precision == "float32" else _USUAL:
            for quotient in QUOTIENTS:
                yield Floats(precision, quotient, rounding)


def _has_codes(alone: Part) -> bool:
    """Return whether all results, and an input, are codes with scales."""
    graph, operator = alone.graph, alone.op
    given, made = ([graph.tensors[t] for t in tensors if t >= 0] for tensors in (operator.inputs, operator.outputs))
    return any(t.type in CODES for t in given) and all(t.type in CODES for t in made)


_NARROW = (TensorType.INT8, TensorType.UINT8, TensorType.INT4)
_DENSE = OperatorCode(9, "FULLY_CONNECTED")


def mistaken_hybrids(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield the convolution as a FULLY_CONNECTED of its pixels, under each profile."""
    graph, operator = alone.graph, alone.op
    name, options = operator.builtin, operator.options
    if name != "CONV_2D" or options is None or operator.inputs[0] not in alone.inputs:
        return
    x, w = alone.inputs[operator.inputs[0]], graph.tensors[operator.inputs[1]]
    is_one_tap = len(w.shape) == 4 and tuple(w.shape[1:3]) == (1, 1) and w.shape[3] == x.shape[-1]
    strides = options.get("stride_h", 1), options.get("stride_w", 1)
    if x.dtype != np.float32 or w.type not in _NARROW or not is_one_tap or strides != (1, 1):
        return
    dense = _as_dense(alone.model)
    if dense is None:
        return
    kinds: set[Hashable] = set()
    for one in (profile, *(by_name(other) for other in PROFILES)):
        kind = computation(replace(alone, model=dense), one)
        if kind not in kinds:
            kinds.add(kind)
            yield f"quantized per pixel, as FULLY_CONNECTED of {one.name}", Under(one, dense)


def _as_dense(model: Model) -> Model | None:
    """Return the single operator's model as a FULLY_CONNECTED of pixels; None if the weights are not in the file."""
    graph = view(model)
    operator = graph.op(0)
    tensor = operator.inputs[1]
    weights = graph.constant(tensor)
    if weights is None or operator.options is None:
        return None
    if graph.tensors[tensor].type == TensorType.INT4:
        spec = graph.tensors[tensor]
        model = with_tensor(model, tensor, replace(spec, shape=(spec.shape[0], spec.shape[3]), shape_signature=None))
    else:
        model = with_constant(model, tensor, weights.reshape(weights.shape[0], -1))
    activation = operator.options.get("fused_activation_function", 0)
    fields = {"fused_activation_function": activation, "weights_format": 0, "keep_num_dims": True}
    changed = replace(
        operator.record, opcode_index=len(model.operator_codes), options=Record("FullyConnectedOptions", fields)
    )
    return with_operator(replace(model, operator_codes=(*model.operator_codes, _DENSE)), changed)


Narrow = Callable[[Array], Array]


def in_tf32(values: Array) -> Array:
    """Round to the nearest number with a mantissa of 10 bits and float32's exponents, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000
    return rounded.astype(np.uint32).view(np.float32).reshape(values.shape)


NARROW: dict[str, Narrow] = {"float16": in_float16, "bfloat16": in_bfloat16, "TF32": in_tf32}


def mistaken_operands(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield float operators on operands, and on weights only, of a narrower type."""
    floats = [p for p, x in alone.inputs.items() if x.dtype == np.float32]
    if not floats or any(y.dtype != np.float32 for y in alone.got.values()):
        return
    constants = _constants(alone)
    for name, narrowed in NARROW.items():
        model = _round(alone.model, constants, narrowed)
        yield f"operands rounded to {name}", Under(profile, model, dict.fromkeys(floats, partial(_narrow, narrowed)))
        if constants:
            yield f"weights rounded to {name}", Under(profile, model)


def _constants(alone: Part) -> tuple[int, ...]:
    """Return the float constants that are no biases: of two axes or more."""
    graph = alone.graph
    specs = [(t, graph.tensors[t]) for t in alone.op.inputs if t >= 0 and t not in alone.inputs]
    return tuple(t for t, spec in specs if spec.type == TensorType.FLOAT32 and len(spec.shape) > 1)


def _round(model: Model, constants: tuple[int, ...], narrowed: Narrow) -> Model:
    for tensor in constants:
        value = view(model).constant(tensor)
        if value is not None:
            model = with_constant(model, tensor, narrowed(value).astype(np.float32))
    return model


def _narrow(narrowed: Narrow, x: Array) -> Array:
    return narrowed(x).astype(np.float32)
