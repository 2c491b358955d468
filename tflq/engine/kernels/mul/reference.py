"""MUL: y = a * b.

| operand | shape             | types                                              | quantization                    |
|---------|-------------------|----------------------------------------------------|---------------------------------|
| a, b    | any, broadcasting | uint8, int8, int16                                 | per tensor; int16: zero point 0 |
|         |                   | float32, float16, complex64, int32, uint32, int64  | none; int16 too                 |
| y       | broadcast         | as a; for int16 also int8, uint8                   | as a                            |

Options: fused_activation_function (not for complex64).
int16 without quantization is plain arithmetic that wraps; int16 to 8 bits is a Q0.15 product without broadcasting.
float32 on AArch64: see tflq/engine/kernels/families/float_limits.py.
Source: LiteRT 2.3, mul.cc Prepare; reference/mul.h, reference/integer_ops/mul.h MulElementwise, Mul.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import code_range, limits
from tflq.engine.kernels.families.binary import both, eval_plain, prepare_clamped
from tflq.engine.kernels.families.contraction import require_codes
from tflq.engine.kernels.families.float_limits import COMPARED, in_vectors, limit, of_equals, where_equal
from tflq.engine.kernels.families.scaled_sum import accumulated
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.geometry.broadcast import broadcast_shape, spread
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.validity import opt, ref
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.fixedpoint import doubling_high_mul
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_away, wrap_int32
from tflq.engine.numerics.stage_loops import scale_twice
from tflq.engine.numerics.stages import OutputPipeline
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
    for operand in operands:
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
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

KERNELS = (
    *ROWS,
    *valid(opt(cpu="arm64"), limit("MUL", np.multiply, in_vectors, (1, 8))),
    *valid(ref(until="tflite-2.14", cpu="arm64"), limit("MUL", np.multiply, where_equal(of_equals, COMPARED), (1, 8))),
)
