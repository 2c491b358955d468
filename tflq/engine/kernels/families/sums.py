"""Learned forms of sums: contractions, ADD and SUB in integers or floats.

A contraction whose device limits sums on the way, with its fields: pairs of products, or the sum after each tap.

CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED are one sum over (tap, channel) in that order. Bias and scaling are the
row's own.
Sources of fields: x86 without VNNI (vpmaddubsw: codes without a sign times weights, pairs saturate at 16 bits),
accumulators of digital signal processors that saturate with each product.

ADD, SUB as a float32 sum of codes times the ratios of scales, with its fields.

y = round(a * (scale_a / scale_y) + b * (scale_b / scale_y) + constant); devices differ in what the constant holds, in
the order of the sum, and in whether products are rounded before they are added.

Devices that know ranges (`numerics/code_ranges`) count both inputs in steps of the second's range. With steps u and v
above the lowest codes, ratio = step_a / step_b and shift = zero_a + zero_b * step_b / step_a, the ends of the first are
(0 - shift) * ratio and (steps - shift) * ratio, and the sum is u * ((high - low) / steps) + low + v. Either the
output's range is counted in these steps, too, or the sum is scaled back by step_b. SUB has -zero_b and -v.

Sources of fields: ONNX Runtime, MLAS qladd.cpp MlasQLinearAddKernelHelper (zero points folded, the constant first;
fused in qladd_avx2.cpp); OpenCV 5.0 dnn (folded one by one); OpenVINO 2026.4.1, AddTransformation,
FuseMultiplyToFakeQuantizeTransformation and FakeQuantizeTransformation of the low precision transformations (ranges).

ADD, SUB in integers without a common scale: each input by a multiplier of its own to the output's scale.

Either both products have one shift and their sum is rounded once, or each input is requantized by itself (by the
arithmetic's own stage, which a point of the grammar of requantizers can change) and the codes are added.
Sources of fields: Arm Ethos-U (scaled elementwise addition), accelerators whose adder has a single output shifter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from tflq.engine.kernels.families.activation import code_range
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.contraction import Output
from tflq.engine.kernels.families.learned_form import form
from tflq.engine.kernels.families.reals import CODES
from tflq.engine.kernels.geometry.axes import broadcast_shape
from tflq.engine.kernels.geometry.windows import Window, read_tap, window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import TO_CODES, Clamp, CodeRange, range_of
from tflq.engine.numerics.estimates import MultiplyAdd, fuse, round_apart
from tflq.engine.numerics.requantizer import MANTISSAS, SHIFTS, SHORTENED, Requantizer, reader
from tflq.engine.numerics.rounding import OF_HARDWARE, ROUNDINGS
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: The operators that have it.
OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
EXACT, PAIRS = "exact", "pairs saturate at 16 bits"
#: The values of each field. `width` counts bits of the sum after each tap, which saturates.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "products": (EXACT, PAIRS),
    "width": ("any", "16 bits", "18 bits", "20 bits", "24 bits", "32 bits"),
    "bias": ("last", "first"),
}
#: The largest number of products.
_MOST = 1 << 25
_FAR = np.int64(1) << np.int64(60)


@dataclass(frozen=True, slots=True)
class Sums:
    """One point of the grammar of sums. Fields are spelled as files of profiles spell them."""

    products: str = EXACT
    width: str = "any"
    bias: str = "last"


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants. `weights` are codes (O, KH, KW, C / groups), `first` the first input channel of an output's group."""

    window: Window
    shape: Shape
    weights: Array
    first: Array
    zero_point: int
    unsigned: int  # what makes codes unsigned for pairs of products
    output: Output
    point: Sums
    is_dense: bool  # rows, each an image of one pixel


@form(reader(Sums, FIELDS, "a sum of products"), OPERATORS)
def sum_by_rule(node: Node, arithmetic: Arithmetic, row: Kernel, point: Sums) -> Prepared:
    """Return the row whose sums are limited on the way."""
    prepared = row.prepare(node, arithmetic)
    x, w, shape = node.input(0), node.input(1), prepared.shapes[0]
    output = getattr(prepared.data, "output", None)
    if not isinstance(output, Output) or w.value is None or w.value.dtype != np.int8 or shape is None:
        node.refuse("is no contraction of codes with constant weights of 8 bits")
    dense = node.op == "FULLY_CONNECTED"
    weights = w.value.reshape(len(w.value), 1, 1, -1) if dense else w.value
    weights = weights.transpose(3, 1, 2, 0) if node.op == "DEPTHWISE_CONV_2D" else weights
    depth, inputs = weights.shape[3], weights.shape[3] if dense else x.shape[3]
    at = Window.of_one_tap(1, 1) if dense else window(node, x.shape, (weights.shape[1], weights.shape[2]))
    node.check(int(np.prod(shape)) * weights[:1].size <= _MOST, "has too many products to add one by one")
    share = max(1, len(weights) // max(1, inputs // depth))
    first = np.arange(len(weights)) // share * depth
    unsigned = 128 if x.type == TensorType.INT8 else 0
    data = OpData(at, shape, weights.astype(np.int64), first, int(x.zero_point), unsigned, output, point, dense)
    return replace(prepared, data=data, eval=eval_sums)


def eval_sums(data: OpData, x: Array, *_others: Array | None) -> Array:
    """Add the products in order, limited by the point; then scale. Padding: taps outside hold the zero point."""
    image = (x.reshape(-1, 1, 1, data.weights.shape[3]) if data.is_dense else x).astype(np.int64)
    bias = data.output.bias[: len(data.weights)].astype(np.int64)
    bits = 61 if data.point.width == "any" else int(data.point.width.split(" ")[0])
    high = (np.int64(1) << np.int64(bits - 1)) - 1
    at = data.window
    begins = bias if data.point.bias == "first" else np.zeros_like(bias)
    total = np.broadcast_to(np.clip(begins, -high - 1, high), (len(image), at.out_h, at.out_w, len(bias)))
    for ky, kx in product(range(data.weights.shape[1]), range(data.weights.shape[2])):
        taken, w = read_tap(image, at, ky, kx, data.zero_point), data.weights[:, ky, kx]
        if data.point.products == PAIRS:
            total = total + _pairs(data, taken, w)
            continue
        for c in range(w.shape[1]):
            total = np.clip(total + (taken[..., data.first + c] - data.zero_point) * w[:, c], -high - 1, high)
    if data.point.bias == "last":
        total = np.clip(total + bias, -high - 1, high)
    return data.output.pipeline(total, np.zeros_like(bias)).reshape(data.shape)


def _pairs(data: OpData, taken: Array, w: Array) -> Array:
    """Return the sums of one tap in pairs of 16 bits that saturate, less the zero point's part."""
    total = np.zeros((*taken.shape[:3], len(w)), np.int64)
    for c in range(0, w.shape[1], 2):
        pair = (taken[..., data.first + c] + data.unsigned) * w[:, c]
        if c + 1 < w.shape[1]:
            pair = pair + (taken[..., data.first + c + 1] + data.unsigned) * w[:, c + 1]
        total += np.clip(pair, -(2**15), 2**15 - 1)
    corrected: Array = total - (data.zero_point + data.unsigned) * w.sum(1)
    return corrected


FOLDED, ONE_BY_ONE = "folded into the constant", "folded into the constant one by one"
PRODUCTS: Mapping[str, MultiplyAdd] = {"rounded": round_apart, "fused": fuse}
#: Terms in the order in which they are added: the constant and both inputs.
ORDERS: Mapping[str, str] = {
    "constant, first, second": "cab",
    "constant, second, first": "cba",
    "first, second, constant": "abc",
    "second, first, constant": "bac",
    "first, second; constant after rounding": "ab",
    "second, first; constant after rounding": "ba",
}
#: Factors of codes: ratios to the output's scale, or ratios of steps of ranges.
TO_OUTPUT, COUNTED, SCALED_BACK = SCALES = (
    "to the output's scale",
    "to steps of the second range, in which the output's is counted",
    "to steps of the second range, and back",
)
#: The operators that have either form.
SUM_OPERATORS = ("ADD", "SUB")
#: The values of each field.
FLOAT_SUM_FIELDS: Mapping[str, tuple[str, ...]] = {
    "zero_points": ("subtracted from codes", FOLDED, ONE_BY_ONE),
    "order": tuple(ORDERS),
    "products": tuple(PRODUCTS),
    "rounding": tuple(ROUNDINGS),
    "scales": SCALES,
}


@dataclass(frozen=True, slots=True)
class FloatSum:
    """One point of the grammar of sums in floats. Fields are spelled as files of profiles spell them."""

    zero_points: str = "subtracted from codes"
    order: str = "first, second, constant"
    products: str = "rounded"
    rounding: str = "half to even"
    scales: str = TO_OUTPUT


@dataclass(frozen=True, slots=True, eq=False)
class FloatSumData:
    """Constants: ratios of scales, zero points that are subtracted (LSB), and the constant (LSB of the output)."""

    ratios: tuple[np.float32, np.float32]  # the second negative for a difference
    zeros: tuple[int, int]
    constant: np.float32
    clamp: Clamp
    dtype: np.dtype[Any]
    point: FloatSum


@form(reader(FloatSum, FLOAT_SUM_FIELDS, "a sum in floats"), SUM_OPERATORS)
def sum_in_floats(node: Node, arithmetic: Arithmetic, row: Kernel, point: FloatSum) -> Prepared:
    """Return the row of ADD or SUB that adds codes times ratios of scales."""
    sign = -1 if row.op == "SUB" else 1
    a, b, y = both(node)
    for operand in (a, b, y):
        node.check(operand.type in CODES and operand.is_quantized, "has no scale to add with", operand)
    dtype = np.dtype(CARRIER[y.type])
    shape, clamp = broadcast_shape(node, a, b), code_range(node, y, dtype)
    if point.scales != TO_OUTPUT:
        ranges = [range_of(o.scale, int(o.zero_point), type_range(CARRIER[o.type])) for o in (a, b, y)]
        return Prepared((shape,), _in_steps(ranges, sign, clamp, dtype, point), eval_sum_in_steps)
    ratios = np.float32(a.scale / y.scale), np.float32(np.float32(sign) * (b.scale / y.scale))
    zeros, constant = (int(a.zero_point), int(b.zero_point)), np.float32(y.zero_point)
    terms = [np.float32(r * np.float32(z)) for r, z in zip(ratios, zeros, strict=True)]
    if point.zero_points == FOLDED:
        constant, zeros = np.float32(constant - (terms[0] + terms[1])), (0, 0)
    elif point.zero_points == ONE_BY_ONE:
        constant, zeros = np.float32(np.float32(constant - terms[0]) - terms[1]), (0, 0)
    return Prepared((shape,), FloatSumData(ratios, zeros, constant, clamp, dtype, point), eval_float_sum)


def eval_float_sum(data: FloatSumData, a: Array, b: Array) -> Array:
    """Add in float32 and round. Rounding: by the point. Overflow: none, sums of 16-bit codes stay below 2**62."""
    point, terms = data.point, ORDERS[data.point.order]
    multiply_add = PRODUCTS[point.products]
    codes = {
        name: (x.astype(np.int64) - zero).astype(np.float32)
        for name, x, zero in zip("ab", np.broadcast_arrays(a, b), data.zeros, strict=True)
    }
    ratios = dict(zip("ab", data.ratios, strict=True))
    total: Any = None
    with np.errstate(all="ignore"):
        for term in terms:
            if total is None:
                total = data.constant if term == "c" else codes[term] * ratios[term]
            elif term == "c":
                total = total + data.constant
            else:
                total = multiply_add(codes[term], ratios[term], total)
        rounded = np.asarray(ROUNDINGS[point.rounding](np.asarray(total, np.float32)), np.float64)
    rounded = rounded if "c" in terms else rounded + float(data.constant)
    return np.asarray(np.clip(rounded, *data.clamp).astype(data.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class StepData:
    """Constants: both inputs' ranges, the first's as steps of the second, and the output's as what the sum counts."""

    first: CodeRange
    second: CodeRange
    output: CodeRange
    scale: np.float32  # what the sum is multiplied by
    sign: int
    clamp: Clamp
    dtype: np.dtype[Any]
    point: FloatSum


def _in_steps(ranges: Sequence[CodeRange], sign: int, clamp: Clamp, dtype: np.dtype[Any], point: FloatSum) -> StepData:
    f32 = np.float32
    a, b, y = ranges
    with np.errstate(all="ignore"):
        ratio = a.step / b.step
        shift = f32(a.zero + f32(sign) * f32(f32(b.zero * b.step) / a.step))
        first = a.make_again(shift, ratio)
        if point.scales == COUNTED:
            y, scale = replace(y, low=f32(y.low / b.step), high=f32(y.high / b.step)), f32(1)
        else:
            scale = b.step
    return StepData(first, b, y, scale, sign, clamp, dtype, point)


def eval_sum_in_steps(data: StepData, a: Array, b: Array) -> Array:
    """Add steps of ranges in float32 and quantize by the output's range. Rounding: by the point. Overflow: none."""
    point, first = data.point, data.first
    with np.errstate(all="ignore"):
        left = PRODUCTS[point.products](first.counted(a), first.step, first.low)
        right = data.second.counted(b)
        total = np.asarray(left + right if data.sign > 0 else left - right) * data.scale
        codes = TO_CODES["by range"].codes(total, data.output, ROUNDINGS[point.rounding])
    return np.asarray(np.clip(np.nan_to_num(codes, nan=0.0), *data.clamp).astype(data.dtype))


SHARED, EACH = FORMS = ("one shift for both products", "each input requantized")
#: The values of each field. `mantissa`, `shortened` and `last` belong to the first form.
INTEGER_SUMS_FIELDS: Mapping[str, tuple[object, ...]] = {
    "form": FORMS,
    "mantissa": (*MANTISSAS[:-1], 30, 22, 20, 14, 13, 10),
    "shortened": SHORTENED[:2],
    "last": tuple(OF_HARDWARE),
}


@dataclass(frozen=True, slots=True)
class IntegerSum:
    """One point of the grammar of integer sums. Fields are spelled as files of profiles spell them."""

    form: str = SHARED
    mantissa: int = 15
    shortened: str = SHORTENED[0]
    last: str = "half up"


@dataclass(frozen=True, slots=True, eq=False)
class IntegerSumsData:
    """Constants: zero points (LSB), multipliers and their shift, or the stage of each input."""

    zeros: tuple[int, int, int]
    sign: int
    factors: tuple[int, int, int]  # both multipliers and the shift to the right
    stages: tuple[OutputStage, ...]
    clamp: Clamp
    dtype: np.dtype[Any]
    point: IntegerSum


@form(reader(IntegerSum, INTEGER_SUMS_FIELDS, "an integer sum"), SUM_OPERATORS)
def sum_in_integers(node: Node, arithmetic: Arithmetic, row: Kernel, point: IntegerSum) -> Prepared:
    """Return the row of ADD or SUB whose inputs are brought to the output's scale by themselves."""
    a, b, y = both(node)
    for operand in (a, b, y):
        node.check(operand.is_quantized and operand.type in CARRIER, "has no scale to add with", operand)
    reals = np.array([np.float64(o.scale) / np.float64(y.scale) for o in (a, b)])
    node.check(bool(np.all(np.isfinite(reals) & (reals > 0))), "has no positive scales", y)
    dtype = CARRIER[y.type]
    width = Requantizer(mantissa=point.mantissa, shortened=point.shortened, shift=SHIFTS[1])
    mantissas, shifts = width.factors(reals, None)
    factors = int(mantissas[0]), int(mantissas[1]), point.mantissa - int(shifts[0])
    stages = tuple(arithmetic.requantize(real) for real in reals) if point.form == EACH else ()
    zeros = int(a.zero_point), int(b.zero_point), int(y.zero_point)
    sign, clamp = -1 if node.op == "SUB" else 1, code_range(node, y, dtype)
    data = IntegerSumsData(zeros, sign, factors, stages, clamp, dtype, point)
    return Prepared((broadcast_shape(node, a, b),), data, eval_integer_sum)


def eval_integer_sum(data: IntegerSumsData, a: Array, b: Array) -> Array:
    """Bring both inputs to the output's scale and add. Rounding: by the point, or by each input's stage."""
    first, second = (np.asarray(x, np.int64) - zero for x, zero in zip((a, b), data.zeros, strict=False))
    second = data.sign * second if data.point.form == SHARED else second
    if data.point.form == SHARED:
        one, other, shift = data.factors
        total = (first * one + second * other) << np.int64(max(-shift, 0))
        total = OF_HARDWARE[data.point.last](total, np.full((1,), min(max(shift, 0), 62), np.int64))
    else:
        scaled = (
            s(x.reshape(1, -1)).astype(np.int64).reshape(x.shape)
            for s, x in zip(data.stages, (first, second), strict=True)
        )
        left, right = scaled
        total = left + data.sign * right
    return np.asarray(np.clip(total + data.zeros[2], *data.clamp).astype(data.dtype))
