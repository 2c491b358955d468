"""Learned forms of means, averages and softmax.

AVERAGE_POOL_2D as an average of codes: a sum and one division, with its fields.

Devices differ in the rounding of the quotient, in whether the zero point is subtracted before it, in the count of taps
by which they divide, in how they divide, and in the width of the sum.

MEAN as integer units compute it: one multiplier that holds the count, or a quotient and a multiplier in turn.

The multiplier is made by the arithmetic's own stage, so that a point of the grammar of requantizers can change it.
Sources of fields: LiteRT 2.3 reduce.cc (one multiplier), TFLite 2.7 integer_ops/mean.h (scaled, then divided).

SOFTMAX of 8-bit codes in integers, with its fields: exponentials in a width of bits, their sum, and one quotient.

The exponential of a code is that of its distance below the row's largest code. The output's scale is 1 / 256.
Sources of fields: tables of exponentials in Q15 or 8 bits (PULP-NN, RKNN-like runtimes), exponentials as powers of two
of a fixed-point exponent (I-BERT, ITA), reciprocals of the sum in place of a division.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.families import pooling
from tflq.engine.kernels.families.learned_form import form
from tflq.engine.kernels.families.reduction import ReducedAxes, reduced_axes
from tflq.engine.kernels.geometry.windows import Window, read_tap
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.requantizer import reader
from tflq.engine.numerics.rounding import DIVISIONS, OF_HARDWARE, QUOTIENTS, ROUNDINGS, Ints
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: The operators that have it.
OPERATORS = ("AVERAGE_POOL_2D",)
#: Widths of sums by name.
SUMS: Mapping[str, Callable[[Ints], Ints]] = {
    "exact": lambda sums: sums,
    "16 bits that wraps": lambda sums: sums.astype(np.int16).astype(np.int64),
    "16 bits that saturates": lambda sums: np.clip(sums, -(2**15), 2**15 - 1),
}
#: Floats of reciprocals by name.
_FLOATS: Mapping[str, type[np.floating[Any]]] = {
    "reciprocal in float16": np.float16,
    "reciprocal in float32": np.float32,
}
DIVISION, RECIPROCAL = "division", "reciprocal of 16 bits"
#: Reciprocals as whole numbers in units of 2**-bits, and of the window's height and width one after the other.
_FIXED: Mapping[str, int] = {f"reciprocal of {bits} bits": bits for bits in (8, 12, 15, 16, 20, 24, 31)}
_OF_SIDES: Mapping[str, int] = {f"reciprocals of height and width of {bits} bits": bits for bits in (8, 12, 15, 16)}
#: Reciprocals with a mantissa of some bits, cut off or rounded.
_MANTISSAS: Mapping[str, int] = {f"reciprocal with a mantissa of {bits} bits": bits for bits in (7, 8, 15, 16, 31)}
#: The values of each field.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "rounding": tuple(QUOTIENTS),
    "zero_point": ("kept", "subtracted"),
    "count": ("taps inside", "whole window"),
    "quotient": (DIVISION, *_FIXED, *_OF_SIDES, *_MANTISSAS, *_FLOATS),
    "sum": tuple(SUMS),
}


@dataclass(frozen=True, slots=True)
class Average:
    """One point of the grammar of averages. Fields are spelled as files of profiles spell them."""

    rounding: str = "half away from zero"
    zero_point: str = "kept"
    count: str = "taps inside"
    quotient: str = DIVISION
    sum: str = "exact"

    def divide(self, total: Ints, count: Ints, width: Ints | None = None) -> Ints:
        """Return sums divided by counts above 0; `width` are the columns that make them, 1 if that is left out."""
        if self.quotient == DIVISION:
            return QUOTIENTS[self.rounding](total, count)
        if self.quotient in _FIXED:
            return DIVISIONS[self.rounding](*_times_inverse(total, count, _FIXED[self.quotient]))
        if self.quotient in _OF_SIDES:
            width = np.ones_like(count) if width is None else width
            product, bits = _times_inverse(total, width, _OF_SIDES[self.quotient])
            product, more = _times_inverse(product, count // width, _OF_SIDES[self.quotient])
            return DIVISIONS[self.rounding](product, bits + more)
        if self.quotient in _MANTISSAS:
            digits = np.frexp(count.astype(np.float64))[1].astype(np.int64)  # of the count in binary
            bits = _MANTISSAS[self.quotient] + digits - 1
            return DIVISIONS[self.rounding](*_times_inverse(total, count, bits))
        kind = _FLOATS[self.quotient]
        factor = (np.float32(1) / count.astype(np.float32)).astype(kind).astype(np.float32)
        return np.asarray(ROUNDINGS[self.rounding](total.astype(np.float32) * factor).astype(np.int64))


def _times_inverse(total: Ints, count: Ints, bits: Any) -> tuple[Ints, Ints]:
    """Return sums times 2**bits / count, rounded half up to whole numbers, and the bits."""
    one = np.int64(1) << np.asarray(bits, np.int64)
    inverse: Any = (one + (count >> 1)) // count
    return np.asarray(total * inverse, np.int64), np.broadcast_to(np.asarray(bits, np.int64), total.shape)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants. `window` lies over the image; `zero_point` is that of the input, LSB."""

    window: Window
    zero_point: int
    clamp: Clamp
    point: Average
    dtype: np.dtype[Any]


@form(reader(Average, FIELDS, "an average"), OPERATORS)
def average(node: Node, arithmetic: Arithmetic, row: Kernel, point: Average) -> Prepared:
    """Return the row of AVERAGE_POOL_2D with another quotient."""
    prepared = row.prepare(node, arithmetic)
    pool, x = prepared.data, node.input(0)
    if not isinstance(pool, pooling.OpData) or not x.is_quantized or len(pool.shape) != 4:
        node.refuse("is no average of windows of codes")
    clamp = Clamp(*map(int, pool.clamp))
    data = OpData(pool.window, int(x.zero_point), clamp, point, CARRIER[node.outputs[0].type])
    return replace(prepared, data=data, eval=eval_average)


def eval_average(data: OpData, x: Array) -> Array:
    """Add the taps inside the image and divide once. Rounding: by the point."""
    zero = data.zero_point if data.point.zero_point == "subtracted" else 0
    image = x.astype(np.int64) - zero
    total, count = _sums(image, data.window), _sums(np.ones((1, *x.shape[1:3], 1), np.int64), data.window)
    if data.point.count == "whole window":
        count = np.full_like(count, data.window.kernel_h * data.window.kernel_w)
    across = _sums(np.ones((1, 1, x.shape[2], 1), np.int64), data.window._replace(kernel_h=1, out_h=1, pad_top=0))
    if data.point.count == "whole window":
        across = np.full_like(across, data.window.kernel_w)
    counts = (np.maximum(n, 1) for n in (count, across))
    quotient = data.point.divide(SUMS[data.point.sum](total), *counts) + zero
    return np.asarray(np.clip(quotient, *data.clamp).astype(data.dtype))


def _sums(image: Ints, at: Window) -> Ints:
    """Return sums over the windows, (N, out_h, out_w, C); taps outside the image are left out."""
    sums = np.zeros((image.shape[0], at.out_h, at.out_w, image.shape[3]), np.int64)
    for ky in range(at.kernel_h):
        for kx in range(at.kernel_w):
            sums += read_tap(image, at, ky, kx)
    return sums


#: The operators that have it.
INTEGER_MEANS_OPERATORS = ("MEAN",)
ONCE, DIVIDED_FIRST, SCALED_FIRST = STEPS = ("one multiplier", "divided, then scaled", "scaled, then divided")
#: The values of each field.
INTEGER_MEANS_FIELDS: Mapping[str, tuple[str, ...]] = {"steps": STEPS, "quotient": tuple(QUOTIENTS)}


@dataclass(frozen=True, slots=True)
class Mean:
    """One point of the grammar of means. Fields are spelled as files of profiles spell them."""

    steps: str = ONCE
    quotient: str = "half away from zero"  # of the division by the count; not used by one multiplier


@dataclass(frozen=True, slots=True, eq=False)
class IntegerMeansData:
    """Constants: the axes, the zero points (LSB), and the stage that scales sums or quotients."""

    reduced: ReducedAxes
    zero_in: int
    zero_out: int
    stage: OutputStage
    clamp: Clamp
    dtype: np.dtype[Any]
    point: Mean


@form(reader(Mean, INTEGER_MEANS_FIELDS, "a mean"), INTEGER_MEANS_OPERATORS)
def mean_in_integers(node: Node, arithmetic: Arithmetic, row: Kernel, point: Mean) -> Prepared:
    """Return the row of MEAN that scales and divides in the point's order."""
    x, y = node.input(0), node.outputs[0]
    node.check(x.is_quantized and y.is_quantized and x.type in CARRIER, "has no scale", x)
    reduced, dtype = reduced_axes(node), CARRIER[y.type]
    node.check(reduced.count > 0, "has no elements to average", x)
    ratio = np.float64(x.scale) / np.float64(y.scale) / (reduced.count if point.steps == ONCE else 1)
    clamp = type_range(dtype)
    data = IntegerMeansData(
        reduced, int(x.zero_point), int(y.zero_point), arithmetic.requantize(ratio), clamp, dtype, point
    )
    return Prepared((reduced.shape,), data, eval_mean)


def eval_mean(data: IntegerMeansData, x: Array, _axes: Array) -> Array:
    """Add, then scale and divide. Rounding: by the stage and the point."""
    rows = data.reduced.rows(x)
    total = rows.sum(axis=1, dtype=np.int64) - np.int64(data.zero_in) * rows.shape[1]
    divide, count = QUOTIENTS[data.point.quotient], np.int64(rows.shape[1])
    if data.point.steps == DIVIDED_FIRST:
        total = divide(total, np.full_like(total, count))
    scaled = data.stage(total.reshape(1, -1)).astype(np.int64).reshape(total.shape)
    if data.point.steps == SCALED_FIRST:
        scaled = divide(scaled, np.full_like(scaled, count))
    return np.asarray(np.clip(scaled + data.zero_out, *data.clamp).astype(data.dtype)).reshape(data.reduced.shape)


#: The operators that have it.
INTEGER_SOFTMAX_OPERATORS = ("SOFTMAX",)
_CODES = (TensorType.INT8, TensorType.UINT8)
#: Codes that make 1.
_STEPS = 256
#: Exponentials of distances (reals, at least 0) in units of `one`, by name.
_POWER = "a power of two of {} fraction bits"
_FRACTIONS = (4, 5, 6, 8, 10)
EXPONENTIALS: Mapping[str, Callable[[Array, int], Ints]] = {
    "to nearest": lambda below, one: np.rint(one * np.exp(-below)).astype(np.int64),
    "cut off": lambda below, one: np.floor(one * np.exp(-below)).astype(np.int64),
    **{
        _POWER.format(bits): lambda below, one, bits=bits: _power_of_two(below, one, bits)  # type: ignore[misc]
        for bits in _FRACTIONS
    },
}
INTEGER_SOFTMAX_DIVISION = "division"
#: Bits of reciprocals of sums.
_RECIPROCALS = {f"reciprocal of {bits} bits": bits for bits in (16, 24, 30, 31)}
#: The values of each field.
INTEGER_SOFTMAX_FIELDS: Mapping[str, tuple[object, ...]] = {
    "exponential": tuple(EXPONENTIALS),
    "one": (127, 128, 255, 256, 1023, 1024, 4095, 4096, 16384, 32767, 32768, 65535, 65536, 1 << 20, 1 << 23),
    "quotient": (INTEGER_SOFTMAX_DIVISION, *_RECIPROCALS),
    "rounding": tuple(QUOTIENTS),
    "beta": ("own", "ignored"),
}


def _power_of_two(below: Array, one: int, bits: int) -> Ints:
    """Return one * 2**-(below / ln 2), its exponent in fixed point: a fraction from a table, then a shift."""
    steps = np.floor(below * np.log2(np.e) * 2**bits + 0.5).astype(np.int64)
    whole, part = steps >> np.int64(bits), steps & np.int64((1 << bits) - 1)
    raised: Ints = np.rint(one * 2.0 ** (-part / 2.0**bits)).astype(np.int64) >> np.minimum(whole, 62)
    return raised


@dataclass(frozen=True, slots=True)
class IntegerSoftmax:
    """One point of the grammar of integer softmaxes. Fields are spelled as files of profiles spell them."""

    exponential: str = "to nearest"
    one: int = 32768
    quotient: str = INTEGER_SOFTMAX_DIVISION
    rounding: str = "half up"
    beta: str = "own"


@dataclass(frozen=True, slots=True, eq=False)
class IntegerSoftmaxData:
    """Constants: the exponential of each distance in codes, 0 to 255, and the lowest code of the output."""

    exponentials: Ints
    low: int
    high: int
    dtype: np.dtype[Any]
    point: IntegerSoftmax


@form(reader(IntegerSoftmax, INTEGER_SOFTMAX_FIELDS, "an integer softmax"), INTEGER_SOFTMAX_OPERATORS)
def softmax_in_integers(node: Node, arithmetic: Arithmetic, row: Kernel, point: IntegerSoftmax) -> Prepared:
    """Return the row of SOFTMAX in integers."""
    x, y = node.input(0), node.outputs[0]
    node.check(x.type in _CODES and x.is_quantized, "has no codes of 8 bits", x)
    node.check(y.type in _CODES and float(y.scale) == 1 / _STEPS, "scale", y, expected=1 / _STEPS, got=y.scale)
    low, high = type_range(CARRIER[y.type])
    node.check(int(y.zero_point) == low, "zero point", y, expected=low, got=y.zero_point)
    beta = 1.0 if point.beta == "ignored" else float(node.options["beta"])
    below = np.arange(_STEPS) * float(x.scale) * beta
    node.check(bool(beta >= 0), "beta", expected="at least 0", got=beta)
    table = EXPONENTIALS[point.exponential](below, point.one)
    return Prepared((x.shape,), IntegerSoftmaxData(table, low, high, CARRIER[y.type], point), eval_softmax)


def eval_softmax(data: IntegerSoftmaxData, x: Array) -> Array:
    """Look the exponentials up, add them, divide. Rounding: by the point. Overflow: none below 2**31 channels."""
    codes, point = x.astype(np.int64), data.point
    raised = data.exponentials[codes.max(-1, keepdims=True) - codes] if codes.size else codes
    total = np.maximum(raised.sum(-1, keepdims=True), 1)
    if point.quotient == INTEGER_SOFTMAX_DIVISION:
        quotient = QUOTIENTS[point.rounding](raised * _STEPS, np.broadcast_to(total, raised.shape))
    else:
        bits = _RECIPROCALS[point.quotient]
        product = raised * ((np.int64(1) << np.int64(bits)) // total)
        quotient = OF_HARDWARE[point.rounding](product, np.full_like(product, bits - 8))
    return np.asarray(np.clip(quotient + data.low, data.low, data.high).astype(data.dtype))
