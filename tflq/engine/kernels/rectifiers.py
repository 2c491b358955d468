"""RELU and its kin, and PRELU: x clipped, or scaled below zero.

RELU, RELU6, RELU_0_TO_1, RELU_N1_TO_1: x clipped to [0, inf), [0, 6], [0, 1], [-1, 1].

| operand | shape | types                                  | quantization                    |
|---------|-------|----------------------------------------|---------------------------------|
| x       | any   | float32, uint8, int8                   | per tensor                      |
|         |       | RELU, RELU6: int16                     | zero point 0                    |
| y       | as x  | as x                                   | per tensor, may differ from x's |

Codes are rescaled and held between the limits in y's quantization. TensorFlow Lite Micro's RELU6 does not rescale them,
and holds them in x's quantization; nor does r1.15, in RELU6 and RELU_N1_TO_1, but in y's.
On AArch64, float32 is compared as tflq/engine/kernels/families/binary.py describes; for XNNPACK:
tflq/engine/kernels/families/xnnpack.py.
Source: LiteRT 2.3, activations.cc ReluPrepare, ReluEval, Relu6Eval, Relu0to1Eval, Relu1Eval, QuantizedReluX;
optimized_ops::ReluX, Relu, Relu1, Relu0To1; reference_ops::Relu6. tflite-micro (October 2026), activations_common.cc
Relu6Prepare; activations.h Relu6Quantized. TensorFlow r1.15 lite/kernels/activations.cc QuantizedReluX;
reference_ops.h ReluX.

PRELU: y = x for x >= 0, alpha * x below.

| operand | shape              | types                       | quantization                     |
|---------|--------------------|-----------------------------|----------------------------------|
| x       | any                | float32, uint8, int8, int16 | per tensor                       |
| alpha   | broadcasts to x    | as x; int8 where x is int16 | per tensor                       |
| y       | as x               | as x                        | per tensor                       |

float32 by XNNPACK: see tflq/engine/kernels/families/xnnpack.py.
Source: LiteRT 2.3, activations.cc PreluPrepare, ApplyPrelu; reference/prelu.h Prelu, BroadcastPrelu4DSlow.

PRELU of r1.15: y = x for x >= 0, alpha * x below; codes at the zero point or above are copied.

| operand | shape           | types | quantization |
|---------|-----------------|-------|--------------|
| x       | any             | uint8 | per tensor   |
| alpha   | broadcasts to x | uint8 | per tensor   |
| y       | as x            | uint8 | per tensor   |

The real multiplier scale(x) * scale(alpha) / scale(y) has to be below 1.
Source: TensorFlow r1.15 lite/kernels/activations.cc PreluPrepare; reference_ops.h BroadcastPrelu4DSlow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_zero_point_zero
from tflq.engine.kernels.families.activation import clamp_in_place, quantized_limit
from tflq.engine.kernels.families.binary import NUMBERS, RowLoops, in_vectors, rectify, row_by_row
from tflq.engine.kernels.families.ordered import NO_CLAMP, clamp_std
from tflq.engine.kernels.families.scaled_sum import smaller_than_one
from tflq.engine.kernels.families.unary import prepare_unary, same_type
from tflq.engine.kernels.families.xnnpack import clamping, sloping
from tflq.engine.kernels.geometry.axes import broadcast_shape
from tflq.engine.kernels.kernel import Call, Kernel, Node, Operand, Prepare, Prepared, filling, valid
from tflq.engine.kernels.validity import micro, tf1, tflite, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, type_range
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: The reals between which each holds its operand; None: open.
LIMITS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {"RELU": (0, None), "RELU6": (0, 6), "RELU_0_TO_1": (0, 1), "RELU_N1_TO_1": (-1, 1)}
)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of codes that are rescaled."""

    zero_point: ZeroPoint  # LSB of input
    pipeline: OutputPipeline  # LSB of input -> codes between the limits


@dataclass(frozen=True, slots=True)
class HeldData:
    """Constants of codes that are not rescaled."""

    clamp: Clamp  # codes, LSB of the operand whose quantization counts


def code_limits(node: Node, operand: Operand) -> Clamp:
    """Return the limits in the operand's quantization, inside its type; the quotient is float32, rounded half away."""
    smallest, largest = type_range(np.dtype(operand.type.label))
    low, high = LIMITS[node.op]
    floor = max(smallest, quantized_limit(low, operand.scale, operand.zero_point))
    ceiling = largest if high is None else min(largest, quantized_limit(high, operand.scale, operand.zero_point))
    return Clamp(floor, ceiling)


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Rescale x to y, between limits in y's quantization."""
    x, y = same_type(node)
    dtype = np.dtype(x.type.label)
    if not y.scale > 0:
        raise UndefinedResultError(node.op, "limits over an output without a positive scale of its own")
    if dtype == np.int16:
        require_zero_point_zero(node, x, y)
    stage = arithmetic.requantize(arithmetic.real_of_scales(x.scale, over=y.scale))
    data = OpData(x.zero_point, OutputPipeline(stage, y.zero_point, code_limits(node, y), dtype))
    return prepare_unary(node, data, eval_quantized, dtype)


def prepare_in_input(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Hold codes between those of 0, which need not be one of the type, and of the upper limit."""
    x, _ = same_type(node)
    node.check(bool(x.scale > 0), "needs a positive per-tensor scale", x, got=x.scale)
    smallest, ceiling = type_range(np.dtype(x.type.label))[0], code_limits(node, x).high
    data = HeldData(Clamp(int(x.zero_point), max(smallest, ceiling)))
    return prepare_unary(node, data, eval_held, np.dtype(x.type.label))


def prepare_in_output(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Hold codes between limits in the output's quantization."""
    x, y = same_type(node)
    node.check(bool(y.scale > 0), "needs a positive per-tensor scale", y, got=y.scale)
    return prepare_unary(node, HeldData(code_limits(node, y)), eval_upper_first, np.dtype(x.type.label))


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compare with the limits."""
    x, _ = same_type(node)
    low, high = LIMITS[node.op]
    return Prepared((x.shape,), (np.float32(low), np.float32(np.inf if high is None else high)), eval_float)


def eval_quantized(data: OpData, x: Array) -> Array:
    """Source: ReluX. Rounding: once, by the stage. Overflow: none."""
    return data.pipeline(x.astype(np.int32) - np.int32(data.zero_point))


def eval_held(data: HeldData, x: Array) -> Array:
    """Source: Relu6Quantized. Rounding: none. Overflow: none."""
    return np.clip(x.astype(np.int32), *data.clamp).astype(x.dtype)


def eval_upper_first(data: HeldData, x: Array) -> Array:
    """Source: ReluX of r1.15, which asks for the upper limit first. Rounding, overflow: none."""
    codes, (low, high) = x.astype(np.int32), data.clamp
    return np.where(codes > high, high, np.maximum(codes, low)).astype(x.dtype)


@filling(lambda limits, x: (x.shape, x.dtype), once=lambda limits, x: clamp_in_place(np.array(x), *limits))
def eval_float(limits: tuple[np.float32, np.float32], out: Array, x: Array) -> Call:
    """Source: Relu, Relu1, Relu6, Relu0To1. Rounding: none. NaN stays."""
    return _clamp_into.bound(np.asarray(x, order="C").reshape(-1), *limits, out.reshape(-1))


@in_pieces(x="r", out="r")
@compiled
def _clamp_into(x: Array, low: Real, high: Real, out: Array) -> None:
    """Eval guarantees: `x` and `out` have the same size."""
    for i in range(out.size):
        out[i] = clamp_std(x[i], low, high)


def _rows(op: str, types: str, prepare: Prepare, last_version: int = 1) -> tuple[Kernel, ...]:
    return tuple(Kernel(op, f"{t} -> {t}", prepare, (1, last_version)) for t in types.split())


FLOATS = {op: _rows(op, "float32", prepare_float, 3 if op in ("RELU", "RELU6") else 1) for op in LIMITS}
_RECTIFIERS = (
    *(row for rows in FLOATS.values() for row in rows),
    *_rows("RELU", "uint8 int8 int16", prepare_quantized, 3),
    *_rows("RELU6", "uint8 int8 int16", prepare_quantized, 3),
    *_rows("RELU_0_TO_1", "uint8 int8", prepare_quantized),
    *_rows("RELU_N1_TO_1", "uint8 int8", prepare_quantized),
    *valid(tflite(cpu="arm64"), *_rows("RELU", "float32", rectify(np.inf, in_vectors), 3)),
    *valid(tflite(until="tflite-2.14", cpu="arm64"), *_rows("RELU6", "float32", rectify(6.0, lambda a, b: NUMBERS), 3)),
    *valid(micro(), *_rows("RELU6", "int8 int16", prepare_in_input, 3)),
    *valid(
        tf1(),
        *_rows("RELU6", "uint8 int8", prepare_in_output, 2),
        *_rows("RELU_N1_TO_1", "uint8 int8", prepare_in_output),
    ),
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        *(clamping(op, FLOATS[op], *LIMITS[op]) for op in ("RELU", "RELU6", "RELU_N1_TO_1")),
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceData:
    """Constants of the quantized forms."""

    input_zero_point: ZeroPoint  # LSB of input
    alpha_zero_point: ZeroPoint  # LSB of alpha
    output_zero_point: ZeroPoint  # LSB of output
    positive: OutputStage  # LSB of input -> LSB of output
    negative: OutputStage  # LSB of input times LSB of alpha -> LSB of output
    clamp: Clamp  # LSB of output


def prepare_quantized_reference(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Scale by scale(x) / scale(y), negative input by scale(x) * scale(alpha) / scale(y)."""
    x, alpha, y = node.input(0), node.input(1), node.outputs[0]
    check_shape(node)
    data = ReferenceData(
        input_zero_point=x.zero_point,
        alpha_zero_point=alpha.zero_point,
        output_zero_point=y.zero_point,
        positive=arithmetic.requantize(arithmetic.real_of_operands(x.scale, over=y.scale)),
        negative=arithmetic.requantize(arithmetic.real_of_operands(x.scale, alpha.scale, over=y.scale)),
        clamp=type_range(x.type.label),
    )
    return Prepared((x.shape,), data, eval_quantized_reference)


def check_shape(node: Node) -> None:
    """Refuse an alpha that does not broadcast to the input's shape."""
    x, alpha = node.input(0), node.input(1)
    shape = broadcast_shape(node, x, alpha)
    node.check(shape == x.shape, "does not broadcast to the input's shape", alpha, expected=x.shape, got=alpha.shape)


def eval_quantized_reference(data: ReferenceData, x: Array, alpha: Array) -> Array:
    """Source: Prelu. Rounding: once, by the stage. Overflow: none (|x| < 2**16, |alpha| < 2**9 after centring)."""
    centred = x.astype(np.int32) - np.int32(data.input_zero_point)
    slope = alpha.astype(np.int32) - np.int32(data.alpha_zero_point)
    scaled = np.where(centred >= 0, data.positive(centred), data.negative(centred * slope))
    return np.clip(scaled + np.int32(data.output_zero_point), *data.clamp).astype(x.dtype)


def prepare_float_reference(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    check_shape(node)
    return Prepared((node.input(0).shape,), None, eval_float_reference)


@filling(lambda _, x, alpha: (x.shape, np.float32), once=lambda _, x, alpha: np.where(x >= 0, x, x * alpha))
def eval_float_reference(data: None, out: Array, x: Array, alpha: Array) -> Call:
    """Source: ApplyPrelu. Rounding: one float32 product."""
    return row_by_row(_LOOPS, 0, {}, NO_CLAMP, out, x, alpha)


@compiled
def _sloped_row(x: Array, alpha: Array, function: Int, low: Real, high: Real, out: Array) -> None:
    """Multiply what is not positive, and NaN, by a slope. The caller guarantees: all have the same size."""
    for i in range(out.size):
        out[i] = x[i] if x[i] >= np.float32(0) else x[i] * alpha[i]


_LOOPS = RowLoops.of(_sloped_row)


ROWS = (
    Kernel("PRELU", "float32 float32 -> float32", prepare_float_reference, (1, 1)),
    Kernel("PRELU", "uint8 uint8 -> uint8", prepare_quantized_reference, (1, 1)),
    Kernel("PRELU", "int8 int8 -> int8", prepare_quantized_reference, (1, 1)),
    Kernel("PRELU", "int16 int8 -> int16", prepare_quantized_reference, (1, 1)),
)

_REFERENCE = (*ROWS, *valid(xnnpack("litert-2.1", cpu="x86-64"), sloping("PRELU", ROWS, 2)))


@dataclass(frozen=True, slots=True, eq=False)
class Tf1Data:
    """Constants of an operator."""

    input_zero_point: ZeroPoint  # LSB of input
    alpha_zero_point: ZeroPoint  # LSB of alpha
    output_zero_point: ZeroPoint  # LSB of output
    negative: OutputStage  # LSB of input times LSB of alpha -> LSB of output


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the real multiplier in float32, left to right, then widen it to float64."""
    x, alpha, y = node.input(0), node.input(1), node.outputs[0]
    check_shape(node)
    stage = arithmetic.requantize(smaller_than_one(np.float64(x.scale * alpha.scale / y.scale)))
    return Prepared((x.shape,), Tf1Data(x.zero_point, alpha.zero_point, y.zero_point, stage), evaluate)


def evaluate(data: Tf1Data, x: Array, alpha: Array) -> Array:
    """Source: BroadcastPrelu4DSlow. Rounding: below zero once, by the stage. Overflow: none."""
    centred = x.astype(np.int32) - np.int32(data.input_zero_point)
    slope = alpha.astype(np.int32) - np.int32(data.alpha_zero_point)
    scaled = data.negative(centred * slope) + np.int32(data.output_zero_point)
    return np.where(centred >= 0, x, np.clip(scaled, *type_range(np.uint8)).astype(np.uint8))


_TF1 = valid(tf1(), Kernel("PRELU", "uint8 uint8 -> uint8", prepare, (1, 1)))

#: The rows of all operators above.
KERNELS = (*_RECTIFIERS, *_REFERENCE, *_TF1)
