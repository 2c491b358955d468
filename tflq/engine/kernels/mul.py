"""MUL: y = a * b.

| operand | shape             | types                                              | quantization                    |
|---------|-------------------|----------------------------------------------------|---------------------------------|
| a, b    | any, broadcasting | uint8, int8, int16                                 | per tensor; int16: zero point 0 |
|         |                   | float32, float16, complex64, int32, uint32, int64  | none; int16 too                 |
| y       | broadcast         | as a; for int16 also int8, uint8                   | as a                            |

Options: fused_activation_function (not for complex64).
int16 without quantization is plain arithmetic that wraps; int16 to 8 bits is a Q0.15 product without broadcasting.
float32 on AArch64: see tflq/engine/kernels/families/binary.py.
Source: LiteRT 2.3, mul.cc Prepare; reference/mul.h, reference/integer_ops/mul.h MulElementwise, Mul.

MUL of TensorFlow Lite Micro: 16 bits are always quantized.

| operand | shape             | types       | quantization                    |
|---------|-------------------|-------------|---------------------------------|
| a, b    | any, broadcasting | int8, int16 | per tensor; int16: zero point 0 |
| y       | broadcast         | as a        | as a                            |

An output of uint8 for int16 inputs gets no constants when it is prepared: every code is 0.
Source: tflite-micro (October 2026), mul_common.cc CalculateOpDataMul, EvalMulQuantizedReference.

MUL of 8-bit codes by vector code: scaled products saturate in 16 bits, and wrap when the zero point is added.

Elements left over after whole blocks are identical to the reference, and so are all if no product can leave 16 bits.
Source: LiteRT 2.3 optimized/integer_ops/mul.h MulElementwise, MulSimpleBroadcast; optimized_ops.h MulElementwise,
MulSimpleBroadcast (uint8), all with USE_NEON.

MUL of r1.15 on int16: a product of Q0.15 fractions.

| operand | shape                 | types | quantization  |
|---------|-----------------------|-------|---------------|
| a, b    | any, equally many     | int16 | not looked at |
| y       | as a                  | int16 | not looked at |

Options: fused_activation_function is ignored.
Source: TensorFlow r1.15 lite/kernels/mul.cc EvalQuantized; reference_ops.h Mul (int16).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_zero_point_zero
from tflq.engine.kernels.families.activation import code_range, limits
from tflq.engine.kernels.families.binary import (
    COMPARED,
    both,
    eval_plain,
    in_vectors,
    limit,
    of_equals,
    prepare_clamped,
    where_equal,
)
from tflq.engine.kernels.families.contraction import require_codes
from tflq.engine.kernels.families.scaled_sum import accumulated
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks, run_of
from tflq.engine.kernels.geometry.axes import broadcast_shape, spread
from tflq.engine.kernels.kernel import Call, Kernel, Node, Operand, Prepared, Shape, filling, valid
from tflq.engine.kernels.validity import micro, opt, ref, tf1
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.multiplier import quantize_multipliers
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_away, doubling_high_mul, wrap_int32
from tflq.engine.numerics.stage_roundings import WORD, Unscaled, scale_twice
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array

prepare_number = prepare_clamped(np.multiply)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    first_zero_point: ZeroPoint  # LSB of first input
    second_zero_point: ZeroPoint  # LSB of second input
    pipeline: OutputPipeline  # products of centred codes -> codes
    shape: Shape


@dataclass(frozen=True, slots=True, eq=False)
class NarrowData:
    """Constants of the int16 to 8-bit form."""

    zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output, relative to the zero point
    dtype: np.dtype[np.generic]
    shape: Shape


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Scale products by scale(a) * scale(b) / scale(y)."""
    a, b, y = both(node)
    dtype = np.dtype(y.type.label)
    shape = broadcast_shape(node, a, b)
    stage = arithmetic.requantize(arithmetic.real_of_operands(a.scale, b.scale, over=y.scale))
    pipeline = OutputPipeline(stage, y.zero_point, code_range(node, y, dtype), dtype)
    data = OpData(a.zero_point, b.zero_point, pipeline, shape)
    return Prepared((shape,), data, eval_quantized)


@filling(lambda data, *_: (data.shape, data.pipeline.dtype))
def eval_quantized(data: OpData, out: Array, a: Array, b: Array) -> Call:
    """Source: MulElementwise. Rounding: once, by the stage. Overflow: none (a product has at most 32 bits)."""
    zero_points = int(data.first_zero_point), int(data.second_zero_point)

    def multiply(a: Array, b: Array, accumulator: Array) -> Call:
        return _multiply_centred.bound(a.reshape(-1), b.reshape(-1), *zero_points, accumulator)

    def multiply_scaled(a: Array, b: Array, constants: tuple[int, ...]) -> Call:
        return _multiply_scaled.bound(a.reshape(-1), b.reshape(-1), *zero_points, *constants, out.reshape(-1))

    return accumulated(multiply, multiply_scaled, data.pipeline, out, a, b)


@writes("out")
@in_pieces(a="r", b="r", out="r")
@compiled
def _multiply_centred(a: Array, b: Array, zero_a: Int, zero_b: Int, out: Array) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size."""
    for i in range(len(out)):
        out[i] = wrap_int32((np.int64(a[i]) - zero_a) * (np.int64(b[i]) - zero_b))


@writes("out")
@in_pieces(4, a="r", b="r", out="r")
@compiled
def _multiply_scaled(
    a: Array,
    b: Array,
    zero_a: Int,
    zero_b: Int,
    mantissa: Int,
    left: Int,
    offset: Int,
    below: Int,
    right: Int,
    zero_point: Int,
    low: Int,
    high: Int,
    out: Array,
) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size."""
    for i in range(out.size):
        total = wrap_int32((np.int64(a[i]) - zero_a) * (np.int64(b[i]) - zero_b))
        out[i] = clamp(wrap_int32(scale_twice(total, mantissa, left, offset, below, right) + zero_point), low, high)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Multiply plainly if the output is not quantized; else require zero points 0."""
    operands = both(node)
    if not operands[2].is_quantized:
        return prepare_number(node, arithmetic)
    require_zero_point_zero(node, *operands)
    return prepare_quantized(node, arithmetic)


def prepare_narrow(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Ignore scales: the product is Q0.15, its high 8 bits are the output."""
    a, b, y = both(node)
    node.check(np.prod(a.shape) == np.prod(b.shape), "this form cannot broadcast", b, expected=a.shape, got=b.shape)
    dtype = np.dtype(y.type.label)
    require_codes(node, y)
    low, high = code_range(node, y, dtype)
    shape = broadcast_shape(node, a, b)
    data = NarrowData(y.zero_point, Clamp(low - y.zero_point, high - y.zero_point), dtype, shape)
    return Prepared((shape,), data, eval_narrow)


def eval_narrow(data: NarrowData, a: Array, b: Array) -> Array:
    """Source: Mul (int16 to int8). Rounding: half up in the product, half away in its division by 256."""
    out = np.empty(data.shape, data.dtype)
    x, y = spread(a, data.shape).reshape(-1), spread(b, data.shape).reshape(-1)
    _multiply_q15(x, y, *data.clamp, int(data.zero_point), out.reshape(-1))
    return out


@in_pieces(4, a="r", b="r", out="r")
@compiled
def _multiply_q15(a: Array, b: Array, low: Int, high: Int, zero_point: Int, out: Array) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size."""
    for i in range(len(out)):
        product = doubling_high_mul(a[i], b[i], 16)
        out[i] = clamp(divide_by_pot_half_away(product, 8), low, high) + zero_point


def prepare_complex(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse an activation."""
    a, b, _ = both(node)
    node.check(limits(node) == (None, None), "fused activation of a complex product")
    return Prepared((broadcast_shape(node, a, b),), _multiply_complex, eval_plain)


def _multiply_complex(a: Array, b: Array) -> Array:
    out = np.empty(np.broadcast_shapes(a.shape, b.shape), np.complex64)
    out.real = a.real * b.real - a.imag * b.imag
    out.imag = a.real * b.imag + a.imag * b.real
    return out


NUMBERS = ("float32", "float16", "int32", "uint32", "int64")

ROWS = (
    *(Kernel("MUL", f"{t} {t} -> {t}", prepare_quantized, (1, 8)) for t in ("uint8", "int8")),
    Kernel("MUL", "int16 int16 -> int16", prepare_int16, (1, 8)),
    *(Kernel("MUL", f"int16 int16 -> {t}", prepare_narrow, (1, 8)) for t in ("uint8", "int8")),
    *(Kernel("MUL", f"{t} {t} -> {t}", prepare_number, (1, 8)) for t in NUMBERS),
    Kernel("MUL", "complex64 complex64 -> complex64", prepare_complex, (1, 8)),
)

_REFERENCE = (
    *ROWS,
    *valid(opt(cpu="arm64"), limit("MUL", np.multiply, in_vectors, (1, 8))),
    *valid(ref(until="tflite-2.14", cpu="arm64"), limit("MUL", np.multiply, where_equal(of_equals, COMPARED), (1, 8))),
)


def prepare_int16_micro(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require zero points 0."""
    require_zero_point_zero(node, *both(node))
    return prepare_quantized(node, arithmetic)


def prepare_uint8_output(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the shape alone: multiplier and limits stay 0."""
    a, b, _ = both(node)
    shape = broadcast_shape(node, a, b)
    return Prepared((shape,), shape, eval_uint8_output)


def eval_uint8_output(shape: Shape, a: Array, b: Array) -> Array:
    """Source: EvalMulQuantizedReference, without the constants that it lacks. Overflow: it also writes past the end."""
    return np.zeros(shape, np.uint8)


_MICRO = valid(
    micro(),
    Kernel("MUL", "int8 int8 -> int8", prepare_quantized, (1, 7)),
    Kernel("MUL", "int16 int16 -> int16", prepare_int16_micro, (1, 7)),
    Kernel("MUL", "int16 int16 -> uint8", prepare_uint8_output, (1, 7)),
)


def saturate(scaled: Array) -> Array:
    """Return int32 as int16, saturated. Source: vqmovn_s32."""
    return np.clip(scaled, -(2**15), 2**15 - 1).astype(np.int16)


def truncate(scaled: Array) -> Array:
    """Return the low 16 bits of int32. Source: vmovn_s32."""
    return scaled.astype(np.int16)


#: Type, and whether one operand is a single element -> elements in a block, and how 32 bits become 16 in it.
FORMS: dict[tuple[TensorType, bool], tuple[int, Callable[[Array], Array]]] = {
    (TensorType.UINT8, False): (8, saturate),
    (TensorType.UINT8, True): (8, truncate),
    (TensorType.INT8, False): (16, saturate),
    (TensorType.INT8, True): (16, saturate),
}


@dataclass(frozen=True, slots=True, eq=False)
class OptimizedData:
    """Constants of the vector form."""

    products: OpData  # the reference's, without scaling
    pipeline: OutputPipeline  # the reference's
    narrowed: Callable[[Array], Array]  # scaled products in 32 bits -> in 16 bits
    run: int  # elements that the vector loop goes through without a break
    whole: int  # how many of these fill whole blocks
    stage: OutputStage  # the scaling in these


def prepare_quantized_optimized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the reference's operator; if products can leave 16 bits, they are kept and scaled afterwards."""
    a, b, y = both(node)
    prepared = prepare_quantized(node, arithmetic)
    run, stands_still = run_of(a.shape, b.shape)
    block, narrowed = FORMS[y.type, stands_still]
    whole = in_whole_blocks(run, block)
    largest = _reach(a) * _reach(b) * float(arithmetic.real_of_operands(a.scale, b.scale, over=y.scale)) + abs(
        y.zero_point
    )
    if not whole or largest < 2**15 - 1:
        return prepared
    products, pipeline = replace(prepared.data, pipeline=Unscaled.pipeline()), prepared.data.pipeline
    stage = vector_stage(pipeline.stage, arithmetic)
    return Prepared(prepared.shapes, OptimizedData(products, pipeline, narrowed, run, whole, stage), eval_blocks)


def vector_stage(stage: OutputStage, arithmetic: Arithmetic) -> OutputStage:
    """Return the per-tensor `stage` as vectors do it: a left shift of 32 or more gives 0. Source: vshlq_s32."""
    _, shifts = quantize_multipliers(stage.real)
    return arithmetic.requantize(0.0) if shifts[0] >= WORD else stage


def _reach(operand: Operand) -> int:
    return max(abs(int(code) - operand.zero_point) for code in type_range(operand.type.label))


def eval_blocks(data: OptimizedData, a: Array, b: Array) -> Array:
    """Source: MulElementwise. Rounding: once, by the stage. Overflow: saturates, then wraps 16 bits in whole blocks."""
    products = eval_quantized(data.products, a, b)
    codes = data.pipeline(products).reshape(-1, data.run)
    blocks = products.reshape(-1, data.run)[:, : data.whole]
    wrapped = data.narrowed(data.stage(blocks)) + np.int16(data.pipeline.zero_point)
    codes[:, : data.whole] = np.clip(wrapped, *data.pipeline.clamp)
    return codes.reshape(data.products.shape)


_OPTIMIZED = valid(
    opt(vectors=True),
    *(Kernel("MUL", f"{t} {t} -> {t}", prepare_quantized_optimized, (1, 8)) for t in ("uint8", "int8")),
)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the shape alone."""
    a, b, _ = both(node)
    if np.prod(a.shape) != np.prod(b.shape):
        raise UndefinedResultError("Mul", f"int16 of {list(a.shape)} and {list(b.shape)} reads beyond the smaller one")
    shape = broadcast_shape(node, a, b)
    return Prepared((shape,), shape, evaluate)


def evaluate(shape: Shape, a: Array, b: Array) -> Array:
    """Source: Mul (int16). Rounding: half up. Overflow: -1 times -1 saturates."""
    out = np.empty(shape, np.int16)
    _multiply(np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1), out.reshape(-1))
    return out


@in_pieces(2, a="r", b="r", out="r")
@compiled
def _multiply(a: Array, b: Array, out: Array) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size."""
    for i in range(out.size):
        out[i] = doubling_high_mul(a[i], b[i], 16)


_TF1 = valid(tf1(), Kernel("MUL", "int16 int16 -> int16", prepare, (1, 3)))

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_OPTIMIZED, *_TF1)
