"""SQRT, RSQRT, SQUARE: square root, 1 / square root, x * x.

| operand | shape | types                                  | quantization                    |
|---------|-------|----------------------------------------|---------------------------------|
| x       | any   | float32; SQRT, RSQRT: int8, int16      | per tensor; int16: zero point 0 |
| y       | as x  | as x                                   | per tensor; int16: zero point 0 |

Quantized codes below the zero point raise when run. RSQRT of 0 is the highest code.
Source: LiteRT 2.3, elementwise.cc GenericPrepare, SqrtEval, SqrtEvalQuantized, RsqrtEvalQuantizedInt8,
RsqrtEvalQuantizedInt16, SquareEval.

RSQRT of TensorFlow Lite Micro: 16 bits are computed with the integer inverse square root, not with a table.

| operand | shape | types | quantization             |
|---------|-------|-------|--------------------------|
| x       | any   | int16 | per tensor, zero point 0 |
| y       | as x  | as x  | per tensor, zero point 0 |

Source: tflite-micro (October 2026), elementwise.cc PrepareAbsRsqrt, RsqrtEvalQuantized.

SQUARE, SQRT and RSQRT of float32 by XNNPACK: see tflq/engine/kernels/families/xnnpack.py.

Roots begin with the processor's estimate of 1 / sqrt(x), which makers choose: with AVX-512 it is that of the processor
in `schemas/rsqrt_estimate.json`, with AVX2 it is unknown, and the correctly rounded root takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import by_first_scales
from tflq.engine.kernels.families.unary import check_elementwise, prepare_function, refuse_negative, same_type
from tflq.engine.kernels.families.xnnpack import Operation, applying, computing
from tflq.engine.kernels.kernel import Call, Kernel, Node, Operand, Prepared, close, filling, in_turn, promising, valid
from tflq.engine.kernels.validity import micro, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.elementary import inverse_sqrt
from tflq.engine.numerics.estimates import CPU
from tflq.engine.numerics.libm import Elementwise, over
from tflq.engine.numerics.multiplier import Multiplier, multiply_double_rounding, quantize_multiplier
from tflq.engine.numerics.rounding import clamp, floats_to_int32
from tflq.engine.numerics.stages import type_range
from tflq.engine.numerics.tables import look_up_8bit_into, look_up_16bit_into, table_16bit
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class SqrtData:
    """Constants of the quantized forms."""

    input_scale: np.float32
    input_zero_point: ZeroPoint  # LSB of input
    output_scale: np.float32
    output_zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output


def prepare_sqrt(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute in float32 throughout."""
    x, y = same_type(node)
    check_elementwise(node)
    data = SqrtData(x.scale, x.zero_point, y.scale, y.zero_point, type_range(x.type.label))
    return Prepared((x.shape,), data, eval_sqrt)


@filling(lambda data, x: (x.shape, x.dtype), once=lambda data, x: _roots(data, x))
def eval_sqrt(data: SqrtData, out: Array, x: Array) -> Call:
    """Look up the roots of all codes, which are those of SqrtEvalQuantized."""
    info = np.iinfo(x.dtype)
    table = _roots(data, np.maximum(np.arange(info.min, info.max + 1), data.input_zero_point).astype(x.dtype))
    look_up = _look_up.bound(table, int(info.min), np.asarray(x, order="C").reshape(-1), out.reshape(-1))
    return in_turn([partial(refuse_negative, "Sqrt", x, data.input_zero_point), look_up])


@in_pieces(x="r", out="r")
@compiled
def _look_up(table: Array, lowest: Int, x: Array, out: Array) -> None:
    """Compute out = table[x - lowest]. Eval guarantees: `out` has the size of `x`, the table an entry for each code."""
    for i in range(x.size):
        out[i] = table[np.int64(x[i]) - lowest]


def _roots(data: SqrtData, x: Array) -> Array:
    """Source: SqrtEvalQuantized. Rounding: product, root and quotient in float32, then towards zero."""
    refuse_negative("Sqrt", x, data.input_zero_point)
    real = data.input_scale * (x.astype(np.int32) - np.int32(data.input_zero_point)).astype(np.float32)
    whole = floats_to_int32(np.trunc(np.sqrt(real) / data.output_scale))
    codes = whole + np.int32(data.output_zero_point)
    return np.asarray(np.clip(codes, *data.clamp).astype(x.dtype))


#: Fractional bits that the inverse square root is given before it is scaled.
FRACTION = 20


@dataclass(frozen=True, slots=True, eq=False)
class RsqrtData:
    """An operator on codes as a table, and the lowest code it takes."""

    zero_point: ZeroPoint  # LSB of input
    table: Array


def inverse_multiplier(x: Operand, y: Operand, arithmetic: Arithmetic) -> Multiplier:
    """Return 1 / (sqrt(input scale) * output scale): root and product in the type of scales, quotient in float64."""
    real = arithmetic.scale_type
    with np.errstate(all="ignore"):
        multiplier = quantize_multiplier(float(np.float64(1) / np.float64(np.sqrt(real(x.scale)) * real(y.scale))))
    if not -31 <= multiplier.shift - FRACTION <= 30:
        raise UndefinedResultError("MultiplyByQuantizedMultiplier", f"shifted by {multiplier.shift - FRACTION} bits")
    return multiplier


def prepare_rsqrt_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of all codes."""
    x, y = same_type(node)
    check_elementwise(node)
    if not (x.scale > 0 and y.scale > 0):
        raise UndefinedResultError(node.op, "a scale of 0")
    codes = np.arange(256, dtype=np.uint8).view(np.int8)
    table = np.empty(256, np.int8)
    multiplier = inverse_multiplier(x, y, arithmetic)
    inverse_roots(codes, int(x.zero_point), *multiplier, int(y.zero_point), -128, 127, table)
    return Prepared((x.shape,), RsqrtData(x.zero_point, table), eval_rsqrt_int8)


@in_pieces(40, codes="r", out="r")
@compiled
def inverse_roots(
    codes: Array, zero_in: Int, mantissa: Int, shift: Int, zero_out: Int, low: Int, high: Int, out: Array
) -> None:
    """Write the codes of the inverse roots, `high` for 0.

    Rounding: in the integer inverse square root, in its scaling to 20 fractional bits, and in the last scaling.

    Eval guarantees: `codes` and `out` have the same size.
    """
    for i in range(len(codes)):
        x = np.int64(codes[i]) - zero_in
        if x <= 0:
            out[i] = high
        else:
            root, right = inverse_sqrt(x)
            fine = multiply_double_rounding(1, root, FRACTION - right)
            out[i] = clamp(multiply_double_rounding(fine, mantissa, shift - FRACTION) + zero_out, low, high)


@filling(lambda data, x: (x.shape, np.int8))
def eval_rsqrt_int8(data: RsqrtData, out: Array, x: Array) -> Call:
    """Source: RsqrtEvalQuantizedInt8."""
    codes = np.asarray(x, order="C").reshape(-1).view(np.uint8)
    look_up = look_up_8bit_into.bound(data.table, codes, out.reshape(-1))
    return in_turn([partial(refuse_negative, "Rsqrt", x, data.zero_point), look_up])


def prepare_rsqrt_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 513 samples in float32."""
    x, y = same_type(node)
    check_elementwise(node)
    largest = np.float32(32767) * y.scale

    def transform(real: Array) -> Array:
        return np.where(real <= 0, largest, np.float32(1) / np.sqrt(real))

    table = table_16bit(transform, x.scale, 0, y.scale, 0, arithmetic.multiply_add)
    return Prepared((x.shape,), RsqrtData(ZeroPoint(0), table), eval_rsqrt_int16)


@filling(lambda data, x: (x.shape, np.int16))
def eval_rsqrt_int16(data: RsqrtData, out: Array, x: Array) -> Call:
    """Source: RsqrtEvalQuantizedInt16."""
    look_up = look_up_16bit_into.bound(data.table, np.asarray(x, order="C").reshape(-1), out.reshape(-1))
    return in_turn([partial(refuse_negative, "Rsqrt", x, data.zero_point), look_up])


@compiled
def _rsqrt(x: Real) -> Real:
    return np.float32(1) / np.sqrt(x)


#: Root and quotient, each rounded to float32.
rsqrt = Elementwise(over(_rsqrt, 1), lambda x: np.asarray(np.float32(1) / np.sqrt(x)))
SQUARE = (Kernel("SQUARE", "float32 -> float32", prepare_function(np.square), (1, 1)),)

SQRT = (Kernel("SQRT", "float32 -> float32", prepare_function(np.sqrt), (1, 2)),)
RSQRT = (Kernel("RSQRT", "float32 -> float32", prepare_function(rsqrt), (1, 3)),)

_REFERENCE = (
    *SQRT,
    Kernel("SQRT", "int8 -> int8", by_first_scales(prepare_sqrt), (1, 2)),
    Kernel("SQRT", "int16 -> int16", by_first_scales(prepare_sqrt), (1, 2)),
    *RSQRT,
    Kernel("RSQRT", "int8 -> int8", by_first_scales(prepare_rsqrt_int8), (1, 3)),
    Kernel("RSQRT", "int16 -> int16", by_first_scales(prepare_rsqrt_int16), (1, 3)),
    *SQUARE,
)


@dataclass(frozen=True, slots=True)
class OpData:
    """The output's scaling of inverse roots with 20 fractional bits."""

    multiplier: Multiplier  # Q31


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require zero points 0."""
    x, y = same_type(node)
    check_elementwise(node)
    return Prepared((x.shape,), OpData(inverse_multiplier(x, y, arithmetic)), eval_int16)


def eval_int16(data: OpData, x: Array) -> Array:
    """Source: RsqrtEvalQuantized. Rounding: by inverse_roots. Overflow: saturates."""
    refuse_negative("Rsqrt", x, 0)
    out = np.empty(x.shape, np.int16)
    codes = np.ascontiguousarray(x).reshape(-1)
    inverse_roots(codes, 0, *data.multiplier, 0, *type_range(np.int16), out.reshape(-1))
    return out


_MICRO = valid(micro(), Kernel("RSQRT", "int16 -> int16", prepare_int16, (1, 3)))


_ESTIMATED = close(f"roots begin with the processor's own estimate; with AVX-512 it is that of {CPU}")

_XNNPACK = valid(
    xnnpack("litert-2.1", cpu="x86-64"),
    computing("SQUARE", SQUARE, Operation.MULTIPLY, 1),
    *promising(
        _ESTIMATED,
        (
            applying("RSQRT", RSQRT, lambda _, arithmetic: arithmetic.xnnpack_functions.rsqrt),
            applying("SQRT", SQRT, lambda _, arithmetic: arithmetic.xnnpack_functions.sqrt),
        ),
    ),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_XNNPACK)
