"""Small operators that a proof can decide, in shapes that are hard for proofs.

Scales make ties frequent: real multipliers are powers of two times small odd numbers, and weights often have a common
factor. So some places cannot reach some sums on which stages differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from opfuzz.case import Case
from opfuzz.draw import CODES, Draw
from opfuzz.families import SPECS
from opfuzz.families.contracting import INT32, INT64, SAME, pixels
from opfuzz.one_operator import T
from tflq.proof.codes import ELEMENTWISE

ACTIVATIONS = (0, 0, 0, 1, 2, 3)
#: LSB of output for each LSB of the sum.
EXPONENTS = (-9, 1)
Shape = tuple[int, ...]


def ratio(draw: Draw, low: int = EXPONENTS[0], high: int = EXPONENTS[1]) -> float:
    """Return a power of two times a small odd number; one in three is any number."""
    power = 2.0 ** draw.int(low, high)
    return float(power * (draw.real(0.5, 1) if draw.chance(0.33) else draw.pick([1, 1, 3, 5, 0.75])))


def products(draw: Draw, op: str) -> Case:
    """Draw CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED."""
    kind, weight, added = draw.pick(TYPES)
    return (dense if op == "FULLY_CONNECTED" else windowed)(draw, op, kind, weight, added)


#: Types of input, weights and bias.
TYPES = (
    *[("int8", "int8", "int32")] * 4,
    ("uint8", "uint8", "int32"),
    ("uint8", "uint8", "int32"),
    ("int16", "int8", "int64"),
    ("int16", "int8", "int32"),
    ("int8", "int4", "int32"),
    ("int16", "int16", "int64"),
)


def weights(draw: Draw, kind: str, shape: Shape, axis: int, real: float) -> T:
    """Return weights with a common factor, mostly zeros, or any; per channel in half of the cases."""
    low, high = {"uint8": (0, 255), "int4": (-7, 7), "int16": (-300, 300)}.get(kind, (-127, 127))
    zero = draw.pick([0, 128, 100, 255, draw.int(0, 255)]) if kind == "uint8" else 0
    codes = draw.rng.integers(low, high + 1, shape)
    form = draw.int(0, 3)
    if form == 1:
        codes = zero + draw.pick([2, 4, 8, 16]) * draw.rng.integers(-7, 8, shape)
        codes = np.where(draw.rng.random(shape) < 0.2, zero + 1, codes)
    if form == 2:
        codes = np.where(draw.rng.random(shape) < 0.7, zero, codes)
    if form == 3:
        codes = zero + draw.rng.integers(-3, 4, shape)
    value = np.clip(codes, low, high)
    if kind in ("int8", "int4") and shape[axis] > 1 and draw.chance(0.5):
        scales = [real * 2.0 ** draw.int(-2, 2) for _ in range(shape[axis])]
        return T(kind, shape, scales, [0] * shape[axis], axis, value)
    return T(kind, shape, real, zero, value=value)


def bias(draw: Draw, x: T, w: T, channels: int, kind: str) -> T:
    """Return a bias that is small, absent, or near the ends of its type."""
    reach = draw.pick([0, 3, 40, 3000, 3000, 2**30])
    value = draw.rng.integers(-reach, reach, channels, endpoint=True)
    scales = np.atleast_1d(np.asarray(w.scale, np.float32)) * np.float32(x.scale)
    if len(scales) > 1:
        return T(kind, (channels,), scales.tolist(), [0] * len(scales), 0, value)
    return T(kind, (channels,), float(scales[0]), 0, value=value)


def windowed(draw: Draw, op: str, kind: str, weight: str, added: str) -> Case:
    """Draw windows larger than the image, dilated, strided, in groups, with few and odd channels."""
    kernel = (draw.int(1, 7), draw.int(1, 3)) if draw.chance(0.5) else (draw.int(1, 3), draw.int(1, 7))
    stride = (draw.int(1, 3), draw.int(1, 3)) if draw.chance(0.4) else (1, 1)
    dilation = (draw.int(1, 3), draw.int(1, 3)) if draw.chance(0.3) else (1, 1)
    padding = SAME if draw.chance(0.8) else 1
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    image = [draw.int(r if padding else 1, r + 2 if padding else 4) for r in reach]
    out = tuple(pixels(n, r, s, padding) for n, r, s in zip(image, reach, stride, strict=True))
    batch, depth, groups = draw.pick([1, 1, 1, 2]), draw.pick([1, 1, 2, 3]), draw.pick([1, 1, 1, 2])
    filters = groups * draw.pick([1, 2, 3, 4, 5, 9, 17])
    options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
        "fused_activation_function": draw.pick(ACTIVATIONS),
    }
    name, shape, axis = "Conv2DOptions", (filters, *kernel, depth), 0
    x = T(kind, (batch, *image, groups * depth), 2.0**-5, 0 if kind == "int16" else draw.zero_point(kind))
    if op == "DEPTHWISE_CONV_2D":
        depth, times = draw.pick([1, 2, 3, 8, 9, 17]), draw.pick([1, 1, 2])
        filters, name, axis = depth * times, "DepthwiseConv2DOptions", 3
        shape, options["depth_multiplier"] = (1, *kernel, filters), times
        x = T(kind, (batch, *image, depth), x.scale, x.zero_point)
        added = "int64" if kind == "int16" else added
    elif kind == "int16":
        options["quantized_bias_type"] = INT32 if added == "int32" else INT64
    real = ratio(draw, *((-18, -9) if kind == "int16" else EXPONENTS))
    w = weights(draw, weight, shape, axis, real)
    y = T(kind, (batch, *out, filters), x.scale, 0 if kind == "int16" else draw.zero_point(kind))
    return Case(op, (x, w, bias(draw, x, w, filters, added)), (y,), (), (name, options), draw.version(op))


def transposed(draw: Draw, op: str) -> Case:
    """Draw small outputs with strides, so that each output place sees other taps."""
    kind, weight, added = draw.pick([t for t in TYPES if t[1] != "int4" and t[:2] != ("int16", "int16")])
    kernel = (draw.int(1, 4), draw.int(1, 4))
    stride, padding = (draw.int(1, 3), draw.int(1, 3)), SAME if draw.chance(0.6) else 1
    image = [draw.int(k if padding else 1, k + 4) for k in kernel]
    small = tuple(pixels(n, k, s, padding) for n, k, s in zip(image, kernel, stride, strict=True))
    batch, depth, filters = draw.pick([1, 1, 2]), draw.pick([1, 1, 2, 3]), draw.pick([1, 2, 3, 5, 9])
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
    options["fused_activation_function"] = draw.pick(ACTIVATIONS)
    if kind == "int16":
        options["quantized_bias_type"] = INT32 if added == "int32" else INT64
    x = T(kind, (batch, *small, depth), 2.0**-5, 0 if kind == "int16" else draw.zero_point(kind))
    w = weights(draw, weight, (filters, *kernel, depth), 0, ratio(draw, *((-18, -9) if kind == "int16" else EXPONENTS)))
    y = T(kind, (batch, *image, filters), x.scale, 0 if kind == "int16" else draw.zero_point(kind))
    shape = T("int32", (4,), value=[batch, *image, filters])
    operands = (shape, w, x, bias(draw, x, w, filters, added))
    return Case(op, operands, (y,), (), ("TransposeConvOptions", options), draw.version(op))


def dense(draw: Draw, op: str, kind: str, weight: str, added: str) -> Case:
    """Draw few inputs and units, some rows."""
    depth, units, rows = draw.int(1, 6), draw.pick([1, 2, 3, 4, 8, 9, 17]), draw.pick([1, 1, 2, 3])
    x = T(kind, (rows, depth), 2.0**-5, 0 if kind == "int16" else draw.zero_point(kind))
    w = weights(draw, weight, (units, depth), 0, ratio(draw, *((-18, -9) if kind == "int16" else EXPONENTS)))
    options = {"fused_activation_function": draw.pick(ACTIVATIONS), "keep_num_dims": draw.chance(0.5)}
    if kind == "int16":
        options["quantized_bias_type"] = INT32 if added == "int32" else INT64
    made = "int16" if kind == "uint8" and draw.chance(0.1) else kind
    y = T(made, (rows, units), x.scale, 0 if made == "int16" else draw.zero_point(kind))
    return Case(op, (x, w, bias(draw, x, w, units, added)), (y,), (), ("FullyConnectedOptions", options), 9)


def reduction(draw: Draw, op: str) -> Case:
    """Draw MEAN and SUM of images and of other axes, with channels that fill no whole block."""
    kind = draw.pick(["int8", "uint8"])
    channels = draw.pick([1, 3, 7, 8, 9, 16, 17, 20, 32, 33])
    shape = (draw.pick([1, 1, 2, 8]), draw.int(1, 3), draw.int(1, 2), channels)
    axes = draw.pick([[1, 2], [1, 2], [1, 2], [2, 1], [1], [2], [3], [0, 3], [-2, -3]])
    keep = draw.chance(0.7)
    gone = {a % 4 for a in axes}
    made = tuple(1 if i in gone else n for i, n in enumerate(shape) if keep or i not in gone)
    zeros = draw.pick([(0, 0), (CODES[kind][0],) * 2, (draw.zero_point(kind), draw.zero_point(kind))])
    inputs = T(kind, shape, ratio(draw, -12, -3), zeros[0]), T("int32", (len(axes),), value=axes)
    return Case(op, inputs, (T(kind, made, 2.0**-4, zeros[1]),), (), ("ReducerOptions", {"keep_dims": keep}), 2)


def elementwise(draw: Draw, op: str) -> Case:
    """Draw a case as in other fuzzers, only of codes."""
    for _ in range(20):
        case = SPECS[op](draw, op)
        fed = [t for t in case.inputs if t is not None and t.value is None]
        if fed and all(t.type in ("int8", "uint8", "int16", "int4") for t in fed):
            return case
    return case


def paired(draw: Draw, op: str) -> Case:
    """Draw ADD, SUB and MUL of two inputs, in rows that do not fill whole blocks."""
    kind = draw.pick(["int8", "uint8"])
    shape = draw.pick([(64,), (3, 64), (100,), (4, 24), (2, 4, 40), (8, 33), (8, 20), (16, 12), (5, 7, 8)])
    shapes = draw.pick([(shape, shape), (shape, shape), (shape, shape[-1:]), ((1,), shape)])
    a, b = (T(kind, s, ratio(draw, -9, -5), draw.zero_point(kind)) for s in shapes)
    y = T(kind, shape, ratio(draw, -9, -4), draw.zero_point(kind))
    options = {"fused_activation_function": draw.pick(ACTIVATIONS)}
    return Case(op, (a, b), (y,), (), (f"{op.title()}Options", options), draw.version(op))


def with_constant(draw: Draw, op: str) -> Case:
    """Draw ADD, SUB, MUL or PRELU with a constant that differs between places, or between channels."""
    kind = draw.pick(["int8", "uint8", "int16"])
    shape = draw.pick([(5,), (17,), (64,), (2, 33), (2, 3, 8), (3, 20), (1, 4, 4, 3)])
    other = draw.pick([shape, shape[-1:], (1,) * len(shape), shape])
    zero = (lambda: 0) if kind == "int16" else lambda: draw.zero_point(kind)
    x, y = T(kind, shape, ratio(draw, -9, -5), zero()), T(kind, shape, ratio(draw, -9, -4), zero())
    k = draw.constant(T(kind, other, ratio(draw, -9, -5), zero()))
    if op == "PRELU":
        return Case(op, (x, T("int8" if kind == "int16" else kind, other, k.scale, zero(), value=k.value)), (y,), ())
    options = {"fused_activation_function": draw.pick(ACTIVATIONS)}
    operands = (k, x) if draw.chance(0.3) else (x, k)
    return Case(op, operands, (y,), (), (f"{op.title()}Options", options), draw.version(op))


def anything(draw: Draw, op: str) -> Case:
    """Draw any operator that the other fuzzers know."""
    name = draw.pick(sorted(SPECS))
    return SPECS[name](draw, name)


#: Operator -> its frequency, and its drawing function.
FORMS: Mapping[str, tuple[int, Callable[[Draw, str], Case]]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), (60, products)),
    "TRANSPOSE_CONV": (20, transposed),
    **dict.fromkeys(("MEAN", "SUM"), (20, reduction)),
    **dict.fromkeys(sorted(ELEMENTWISE & SPECS.keys()), (1, elementwise)),
    **{f"{op} CONSTANT": (2, with_constant) for op in ("ADD", "SUB", "MUL", "PRELU")},
    **{f"{op} PAIRED": (1, paired) for op in ("ADD", "SUB", "MUL")},
    "ANY": (4, anything),
}
_TURNS = [name for name, (times, _) in FORMS.items() for _ in range(times)]


def draw_case(seed: int, number: int) -> tuple[str, Case]:
    """Return the form and the case of that number; they depend only on the seed and the number."""
    draw = Draw(np.random.default_rng([seed, number]))
    name = draw.pick(_TURNS)
    return name, FORMS[name][1](draw, name.split(" ")[0])
