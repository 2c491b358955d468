"""LEAKY_RELU: y = x for x >= 0, alpha * x below.

| operand | shape | types                        | quantization                    |
|---------|-------|------------------------------|---------------------------------|
| x       | any   | float32, uint8, int8, int16  | per tensor; int16: zero point 0 |
| y       | as x  | as x                         | per tensor; int16: zero point 0 |

Options: alpha (any sign, any size).
A negative alpha: the magnitude is rounded up, then the sign is applied. Up to LiteRT 2.0, and for 16 bits in the
optimized resolver, the multiplier has the sign, so that half-way cases round up.
Source: LiteRT 2.3, activations.cc LeakyReluPrepare, LeakyReluEval (kGenericOptimized); reference/leaky_relu.h
QuantizeLeakyRelu, LeakyRelu. TensorFlow 2.14, reference/leaky_relu.h QuantizeLeakyRelu; quantization_util.cc
QuantizeMultiplier, whose mantissa has the sign of its argument.

LEAKY_RELU of r1.15: y = x for x >= 0, alpha * x below, where "x" is a code and alpha another.

| operand | shape | types         | quantization |
|---------|-------|---------------|--------------|
| x       | any   | uint8         | per tensor   |
| y       | as x  | uint8         | per tensor   |

Options: alpha, quantized with the input's own scale and zero point and held inside 0 to 255.
Codes at the input's zero point or above are copied, regardless of the output's quantization. Below it, the product of
the two centred codes is rescaled by scale(x)**2 / scale(y), which has to be below 1.
The kernel keeps the centred alpha in a function-local static: the first LEAKY_RELU that a process evaluates sets it for
all later ones. KERNELS give every operator its own alpha; STATIC_ALPHA are the rows that take an interpreter for a
process.
Source: TensorFlow r1.15 lite/kernels/activations.cc LeakyReluPrepare, LeakyReluEval; reference_ops.h QuantizeLeakyRelu.

LEAKY_RELU of 8-bit codes by XNNPACK: multipliers with 8 bits after the point.

Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK's qs8 and qu8 vlrelu.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_zero_point_zero
from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized
from tflq.engine.kernels.families.scaled_sum import smaller_than_one
from tflq.engine.kernels.families.unary import prepare_unary, same_type
from tflq.engine.kernels.families.xnnpack import XnnpackSlopesData, evaluate_xnnpack_slopes, fix, sloping
from tflq.engine.kernels.kernel import Call, CalledSubgraphs, Kernel, Node, Prepared, filling, of_types, valid
from tflq.engine.kernels.table import table
from tflq.engine.kernels.validity import opt, tf1, tflite, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.rounding import INT32_MAX, INT32_MIN, clamp, rounding_half_away, wrap_int32
from tflq.engine.numerics.stage_roundings import DoubleRounding, scale_twice
from tflq.engine.numerics.stages import OutputStage, StageOf, type_range
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceData:
    """Constants of the quantized forms."""

    input_zero_point: ZeroPoint  # LSB of input
    output_zero_point: ZeroPoint  # LSB of output
    positive: OutputStage  # LSB of input -> LSB of output, for x >= zero point
    negative: OutputStage  # the same, times |alpha|
    negative_sign: int  # sign of alpha, applied after the rounding
    clamp: Clamp  # LSB of output


def sign_apart(real: np.float64, stage_of: StageOf) -> tuple[OutputStage, int]:
    """Return the stage of |real| and the sign of its result: half-way cases mirror those of -real."""
    return stage_of(abs(real)), -1 if real < 0 else 1


def prepare_quantized(
    node: Node,
    arithmetic: Arithmetic,
    slope: Callable[[np.float32], np.float32] = np.float32,
    signed: Callable[[np.float64, StageOf], tuple[OutputStage, int]] = sign_apart,
) -> Prepared:
    """Scale by scale(x) / scale(y), for negative input times `slope` of alpha.

    `signed` makes the stage for negative input of its multiplier and of what makes stages.
    """
    x, y = same_type(node)
    alpha = slope(np.float32(node.options["alpha"]))
    below = arithmetic.real_of_scales(x.scale, alpha, over=y.scale)
    dtype = np.dtype(x.type.label)
    if dtype == np.int16:
        require_zero_point_zero(node, x, y)
    negative, sign = signed(below, arithmetic.requantize)
    data = ReferenceData(
        input_zero_point=x.zero_point,
        output_zero_point=y.zero_point,
        positive=arithmetic.requantize(arithmetic.real_of_scales(x.scale, over=y.scale)),
        negative=negative,
        negative_sign=sign,
        clamp=type_range(dtype),
    )
    return prepare_unary(node, data, eval_quantized, dtype)


@filling(lambda data, x: (x.shape, x.dtype))
def eval_quantized(data: ReferenceData, out: Array, x: Array) -> Call:
    """Source: QuantizeLeakyRelu. Rounding: once, by the stage. Overflow: none (|x - zero point| <= 2**16)."""
    codes = np.asarray(x, order="C").reshape(-1)
    above, below, zero_points = data.positive, data.negative, (int(data.input_zero_point), int(data.output_zero_point))
    if isinstance(above, DoubleRounding) and isinstance(below, DoubleRounding):
        scaling = above.of_one(), below.of_one()
        return _scale.bound(codes, *scaling, data.negative_sign, *zero_points, *data.clamp, out.reshape(-1))

    def call() -> None:
        centred, above, below = np.empty((3, codes.size), np.int32)
        _centre(codes, int(data.input_zero_point), centred)
        for stage, scaled in ((data.positive, above), (data.negative, below)):
            stage.narrow_flat(centred[None], scaled[None], 0, INT32_MIN, INT32_MAX)
        zero_point = int(data.output_zero_point)
        _choose(centred, above, below, data.negative_sign, zero_point, *data.clamp, out.reshape(-1))

    return call


@in_pieces(4, codes="r", out="r")
@compiled
def _scale(
    codes: Array,
    above: Any,
    below: Any,
    sign: Int,
    input_zero_point: Int,
    output_zero_point: Int,
    low: Int,
    high: Int,
    out: Array,
) -> None:
    """Eval guarantees: `out` has the size of `codes`; `above` and `below` are what `scale_twice` takes."""
    for i in range(codes.size):
        centred = wrap_int32(np.int64(codes[i]) - input_zero_point)
        if centred >= 0:
            scaled = scale_twice(centred, above[0], above[1], above[2], above[3], above[4])
        else:
            scaled = wrap_int32(scale_twice(centred, below[0], below[1], below[2], below[3], below[4]) * sign)
        out[i] = clamp(wrap_int32(scaled + output_zero_point), low, high)


@in_pieces(codes="r", out="r")
@compiled
def _centre(codes: Array, zero_point: Int, out: Array) -> None:
    """Eval guarantees: `out` has the size of `codes`."""
    for i in range(codes.size):
        out[i] = wrap_int32(np.int64(codes[i]) - zero_point)


@in_pieces(centred="r", above="r", below="r", out="r")
@compiled
def _choose(
    centred: Array, above: Array, below: Array, sign: Int, zero_point: Int, low: Int, high: Int, out: Array
) -> None:
    """Eval guarantees: all arrays have the same size."""
    for i in range(out.size):
        scaled = np.int64(above[i]) if centred[i] >= 0 else wrap_int32(np.int64(below[i]) * sign)
        out[i] = clamp(wrap_int32(scaled + zero_point), low, high)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare alpha alone."""
    same_type(node)
    return prepare_unary(node, np.float32(node.options["alpha"]), eval_float, np.dtype(np.float32))


@filling(lambda alpha, x: (x.shape, x.dtype))
def eval_float(alpha: np.float32, out: Array, x: Array) -> Call:
    """Source: LeakyRelu (float). Rounding: one float32 product."""
    return _leak.bound(np.asarray(x, order="C").reshape(-1), alpha, out.reshape(-1))


@in_pieces(x="r", out="r")
@compiled
def _leak(x: Array, alpha: Real, out: Array) -> None:
    """Compute out = x where that is above 0, else x times alpha.

    Eval guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        scaled = x[i] * alpha
        out[i] = x[i] if x[i] > 0 else scaled


def sign_within(real: np.float64, stage_of: StageOf) -> tuple[OutputStage, int]:
    """Return the stage of `real` with its sign; nothing is left to apply."""
    return stage_of(real), 1


prepare_signed = partial(prepare_quantized, signed=sign_within)

ROWS = (
    Kernel("LEAKY_RELU", "float32 -> float32", prepare_float, (1, 2)),
    Kernel("LEAKY_RELU", "uint8 -> uint8", prepare_quantized, (1, 2)),
    Kernel("LEAKY_RELU", "int8 -> int8", prepare_quantized, (1, 2)),
    Kernel("LEAKY_RELU", "int16 -> int16", prepare_quantized, (1, 2)),
)
#: Quantized rows whose multiplier has the sign of alpha.
SIGNED = tuple(Kernel("LEAKY_RELU", f"{t} -> {t}", prepare_signed, (1, 2)) for t in ("uint8", "int8", "int16"))

_REFERENCE = (
    *ROWS,
    *valid(opt("litert-2.1"), of_types(SIGNED, "int16 -> int16")),
    *valid(tflite(until="litert-2.0"), *SIGNED),
)


@dataclass(frozen=True, slots=True, eq=False)
class Tf1Data:
    """Constants of an operator."""

    input_zero_point: ZeroPoint  # LSB of input
    output_zero_point: ZeroPoint  # LSB of output
    alpha: int  # LSB of input, centred
    negative: OutputStage  # LSB of input squared -> LSB of output


def op_data(node: Node, arithmetic: Arithmetic) -> Tf1Data:
    """Compute the real multiplier in float32, left to right, then widen it to float64."""
    x, y = same_type(node)
    code = code_of_alpha(np.float32(node.options["alpha"]), x.scale, x.zero_point)
    stage = arithmetic.requantize(smaller_than_one(np.float64(x.scale * x.scale / y.scale)))
    return Tf1Data(x.zero_point, y.zero_point, code - x.zero_point, stage)


def code_of_alpha(alpha: np.float32, scale: np.float32, zero_point: int) -> int:
    """Quantize in float32, round half away and clip to 0 to 255: a negative alpha may saturate."""
    return min(max(rounding_half_away(float(np.float32(zero_point) + alpha / scale)), 0), 255)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    return prepare_unary(node, op_data(node, arithmetic), evaluate_tf1, np.dtype(np.uint8))


def evaluate_tf1(data: Tf1Data, x: Array) -> Array:
    """Source: QuantizeLeakyRelu. Rounding: below zero once, by the stage. Overflow: none (a product has 17 bits)."""
    centred = x.astype(np.int32) - np.int32(data.input_zero_point)
    scaled = data.negative(centred * np.int32(data.alpha)) + np.int32(data.output_zero_point)
    below = np.clip(scaled, *type_range(np.uint8)).astype(np.uint8)
    return np.where(centred >= 0, x, below)


def prepare_static(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like `prepare`, without a table: alpha is that of the first LEAKY_RELU run in the process."""
    x, _ = same_type(node)
    return Prepared((x.shape,), op_data(node, arithmetic), evaluate_static)


def evaluate_static(data: Tf1Data, session: CalledSubgraphs, x: Array) -> Array:
    """Evaluate with the alpha of the first LEAKY_RELU that ran in this process."""
    alpha = session.resources.setdefault(_STATIC, data.alpha)
    return evaluate_tf1(Tf1Data(data.input_zero_point, data.output_zero_point, alpha, data.negative), x)


_STATIC = "alpha_value of QuantizeLeakyRelu"

_TF1 = valid(tf1(), Kernel("LEAKY_RELU", "uint8 -> uint8", prepare, (1, 1)))
STATIC_ALPHA = table(valid(tf1(), Kernel("LEAKY_RELU", "uint8 -> uint8", prepare_static, (1, 1), session=True)))


_SMALLEST, _LARGEST, _LARGEST_NEGATIVE = 2.0**-8, 128.0, -127.99609375


def takes(node: Node) -> bool:
    """Return whether alpha is normal and 16 bits hold the multipliers. All products are float32."""
    x, y = same_type(node)
    alpha = np.float32(node.options["alpha"])
    if not (is_quantized(x) and is_quantized(y) and has_shape(x) and _is_normal(alpha)):
        return False
    if not (_is_normal(x.scale) and _is_normal(y.scale)):
        return True
    positive = x.scale / y.scale
    negative = positive * alpha
    return bool(
        _SMALLEST <= positive <= _LARGEST and _LARGEST_NEGATIVE <= negative <= _LARGEST and abs(negative) >= _SMALLEST
    )


def _is_normal(x: np.float32) -> bool:
    return bool(np.isfinite(x) and abs(x) >= np.finfo(np.float32).tiny)


def prepare_xnnpack(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute multipliers as float32 products, rounded half to even."""
    x, y = same_type(node)
    ratio = x.scale / y.scale
    dtype = np.dtype(x.type.label)
    data = XnnpackSlopesData(
        input_zero_point=x.zero_point,
        output_zero_point=y.zero_point,
        positive=fix(ratio),
        negative=fix(ratio * np.float32(node.options["alpha"])),
        clamp=type_range(dtype),
    )
    return prepare_unary(node, data, evaluate_xnnpack_slopes, dtype)


_XNNPACK = (
    *valid(
        xnnpack(),
        *(delegate(Kernel("LEAKY_RELU", f"{t} -> {t}", prepare_xnnpack, (1, 2)), takes) for t in ("uint8", "int8")),
    ),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), sloping("LEAKY_RELU", ROWS, 1)),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_TF1, *_XNNPACK)
