"""DIV, FLOOR_DIV, FLOOR_MOD, POW, ATAN2.

DIV, FLOOR_DIV, FLOOR_MOD: a / b, floor(a / b), a - floor(a / b) * b with the sign of b.

| operand | shape             | DIV                              | FLOOR_DIV                   | FLOOR_MOD            |
|---------|-------------------|----------------------------------|-----------------------------|----------------------|
| a, b    | any, broadcasting | float32, int32;                  | float32, int32, int16, int8 | float32, int64,      |
|         |                   | per tensor: uint8, int8, int16   |                             | int32, int16, int8   |
| y       | broadcast         | as a                             | as a                        | as a                 |

DIV: option fused_activation_function. FLOOR_DIV and FLOOR_MOD ignore quantization. Integer division by zero raises when
run, and so does FLOOR_DIV of float32, as the source's Eval returns an error. LiteRT 1.4 to 2.0 refuse divisors whose
code is 0, too.
Refused: FLOOR_DIV of the lowest int8 or int16 by -1. The source converts a float64 that its type cannot hold, which is
undefined: LiteRT's build saturates where it computes several elements at once and wraps elsewhere. In 2.3, optimized
DIV of int32 goes through float32, which is not modelled: refused.
AArch64 up to 2.14: see kernels/families/binary.py. XNNPACK: see kernels/families/xnnpack.py.
Source: LiteRT 2.3, div.cc Prepare, CheckNonZero; reference/div.h DivElementwise, Div, BroadcastDivSlow; floor_div.cc,
floor_mod.cc EvalImpl; reference/floor_div.h FloorDiv; reference/floor_mod.h FloorMod.

POW: y = a ** b.

| operand | shape             | types          |
|---------|-------------------|----------------|
| a, b    | any, broadcasting | float32, int32 |
| y       | broadcast         | as a           |

A single exponent of another shape than the base that is (to 1e-5) a whole number >= 1 multiplies; else the host's libm.
Negative int32 exponents raise when run, as the source's Eval returns an error.
Source: LiteRT 2.3, pow.cc CheckValue, PowImpl; optimized_ops::BroadcastPow4D, IntegerExponentPow; reference_ops::Pow.

ATAN2: the angle of the point (x, y).

| operand | shape                  | types                               |
|---------|------------------------|-------------------------------------|
| y       | any                    | float32, float64, float16, bfloat16 |
| x       | as many dimensions     | as y                                |
| angle   | as y                   | as y                                |

The source pairs elements by their place in memory: where x is the larger, its last ones are not read.
Exactness: exact on the same libm (atan2f; atan2 for float64).
Source: LiteRT 2.3, atan2.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.activation import clamp_in_place, code_range, number_range
from tflq.engine.kernels.families.binary import (
    COMPARED,
    NUMBERS,
    Clamped,
    both,
    limit,
    prepare_clamped,
    prepare_plain,
    where_equal,
)
from tflq.engine.kernels.families.reduction import highest, lowest
from tflq.engine.kernels.families.unary import from_bfloat16, to_bfloat16
from tflq.engine.kernels.families.xnnpack import Operation, computing
from tflq.engine.kernels.geometry.axes import broadcast_shape, spread
from tflq.engine.kernels.kernel import SAME_LIBM, Kernel, Node, Prepare, Prepared, Shape, undefined, valid
from tflq.engine.kernels.validity import opt, tflite, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.elementary import reciprocal
from tflq.engine.numerics.libm import atan2f, powf
from tflq.engine.numerics.multiplier import Multiplier, quantize_multiplier
from tflq.engine.numerics.rounding import (
    clamp,
    count_leading_sign_bits,
    doubling_high_mul,
    floats_to_int32,
    rounding_half_away,
    wrap_int32,
)
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    first_zero_point: ZeroPoint  # LSB of first input
    second_zero_point: ZeroPoint  # LSB of second input
    multiplier: Multiplier  # of a.scale / (b.scale * y.scale), Q31
    output_zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output
    dtype: np.dtype[np.generic]
    shape: Shape


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the real multiplier as a quotient by a product, in the arithmetic's type of scales."""
    a, b, y = both(node)
    dtype = np.dtype(y.type.label)
    shape = broadcast_shape(node, a, b)
    first, second, made = (arithmetic.scale_type(operand.scale) for operand in (a, b, y))
    multiplier = quantize_multiplier(float(first / (second * made)))
    clamp = code_range(node, y, dtype)
    data = OpData(a.zero_point, b.zero_point, multiplier, y.zero_point, clamp, dtype, shape)
    return Prepared((shape,), data, eval_quantized)


def prepare_per_tensor(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse several scales. Source: LiteRT 2.2 div.cc EvalQuantized."""
    for operand in both(node):
        q = operand.quantization
        node.check(q is None or len(q.scale) <= 1, "has several scales", operand)
    return prepare_quantized(node, arithmetic)


def eval_quantized(data: OpData, a: Array, b: Array) -> Array:
    """Source: DivElementwise. Rounding: in the reciprocal, in both products, and in the last shift."""
    refuse_zero("Div", b, data.second_zero_point)
    out = np.empty(data.shape, data.dtype)
    _divide(
        spread(a, data.shape).reshape(-1),
        spread(b, data.shape).reshape(-1),
        int(data.first_zero_point),
        int(data.second_zero_point),
        *data.multiplier,
        int(data.output_zero_point),
        *data.clamp,
        out.reshape(-1),
    )
    return out


def eval_without_code_zero(data: OpData, a: Array, b: Array) -> Array:
    """Raise where a divisor's code is 0, at any zero point. Source: LiteRT 2.0 div.cc CheckNonZero."""
    refuse_zero("Div", b)
    return eval_quantized(data, a, b)


def prepare_without_code_zero(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the earlier kernel."""
    return replace(prepare_quantized(node, arithmetic), eval=eval_without_code_zero)


def refuse_zero(function: str, b: Array, zero: int = 0) -> None:
    """Raise where a divisor is zero."""
    if (b == zero).any():
        where = int(np.argmax(b.reshape(-1) == zero))
        raise UndefinedResultError(function, f"division by zero (element {where} of the divisor)")


@in_pieces(20, a="r", b="r", out="r")
@compiled
def _divide(
    a: Array,
    b: Array,
    zero_a: Int,
    zero_b: Int,
    mantissa: Int,
    shift: Int,
    zero_out: Int,
    low: Int,
    high: Int,
    out: Array,
) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size."""
    for i in range(len(out)):
        dividend, divisor = np.int64(a[i]) - zero_a, np.int64(b[i]) - zero_b
        if divisor < 0:
            dividend, divisor = -dividend, -divisor
        inverse, over = reciprocal(divisor, 31)
        headroom = count_leading_sign_bits(dividend, 32)
        quotient = doubling_high_mul(wrap_int32(dividend << headroom), inverse, 32)
        scaled = doubling_high_mul(quotient, mantissa, 32)
        code = divide_by_any_pot(scaled, headroom + over - shift) + zero_out
        out[i] = clamp(code, low, high)


@compiled
def divide_by_any_pot(x: Int, exponent: Int) -> Int:
    """Compute RoundingDivideByPOT of int32 on x86 for any exponent, beyond its domain 0..31, too.

    A 64-bit shift that makes the mask takes its count modulo 64, a 32-bit shift of the value modulo 32. A zero dividend
    meets exponents above 31: the mask is then -1, and the result 1.
    """
    mask = wrap_int32((np.int64(1) << (np.int64(exponent) & np.int64(63))) - np.int64(1))
    threshold = (mask >> np.int64(1)) + np.int64(x < 0)
    return (np.int64(x) >> (np.int64(exponent) & np.int64(31))) + np.int64((np.int64(x) & mask) > threshold)


def prepare_int32(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare quotients that are truncated."""
    a, b, _ = both(node)
    data = Clamped(np.floor_divide, number_range(node, np.dtype(np.int32)))
    return Prepared((broadcast_shape(node, a, b),), data, eval_int32)


def eval_int32(data: Clamped, a: Array, b: Array) -> Array:
    """Source: Div (int32). Rounding: towards zero. Overflow: the lowest value by -1 traps there, and raises here."""
    refuse_zero("Div", b)
    if (b == -1).any() and ((a == np.int32(-(2**31))) & (b == -1)).any():
        raise UndefinedResultError("Div", "int32 overflow: the lowest value divided by -1")
    wide, divisor = a.astype(np.int64), b.astype(np.int64)
    quotient = np.asarray(np.sign(wide) * np.sign(divisor) * (np.abs(wide) // np.abs(divisor)))
    return clamp_in_place(np.asarray(quotient.astype(np.int32)), *data.clamp)


DIV = (
    Kernel("DIV", "float32 float32 -> float32", prepare_clamped(np.divide), (1, 2)),
    Kernel("DIV", "int32 int32 -> int32", prepare_int32, (1, 2)),
    *(Kernel("DIV", f"{t} {t} -> {t}", prepare_per_tensor, (1, 2)) for t in ("uint8", "int8", "int16")),
)


def floor_divide(a: Array, b: Array) -> Array:
    """Divide in float64. Rounding: down. Overflow: int32 as x86 converts, narrower types refuse it."""
    refuse_zero("FloorDiv", b)
    quotient = np.floor(np.asarray(a.astype(np.float64) / b.astype(np.float64)))
    if a.dtype == np.float32:
        return quotient.astype(np.float32)
    if a.dtype != np.int32 and (quotient > np.iinfo(a.dtype).max).any():
        raise UndefinedResultError("FloorDiv", f"the lowest {a.dtype} divided by -1 does not fit its type")
    return floats_to_int32(quotient).astype(a.dtype)


#: Bytes for each element: both operands and their quotient as float64.
_SCRATCH = 24


def floor_mod_integer(a: Array, b: Array) -> Array:
    """Refuse the lowest int32 or int64 by -1, which traps in the source."""
    refuse_zero("FloorMod", b)
    if a.dtype.itemsize >= 4 and (b == -1).any() and ((a == np.iinfo(a.dtype).min) & (b == -1)).any():
        raise UndefinedResultError("FloorMod", "integer overflow: the lowest value divided by -1")
    return np.asarray(np.mod(a, b))


def floor_mod_float(a: Array, b: Array) -> Array:
    """Return fmod, exact; if the signs differ, the divisor is added, rounded once."""
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


UNMODELLED_DIV = undefined("int32 quotients of 2.3 go through float32, which is not modelled")
_LOOPS = where_equal(lambda a, b: COMPARED, NUMBERS)

_DIVISION = (
    *DIV,
    *valid(
        tflite(until="litert-2.1"),
        *(replace(row, prepare=prepare_quantized) for row in DIV if row.prepare is prepare_per_tensor),
    ),
    *valid(
        tflite("litert-1.4", "litert-2.0"),
        *(replace(row, prepare=prepare_without_code_zero) for row in DIV if row.prepare is prepare_per_tensor),
    ),
    *tuple(
        Kernel("FLOOR_DIV", f"{t} {t} -> {t}", prepare_plain(floor_divide, _SCRATCH), (1, 3))
        for t in ("float32", "int32", "int16", "int8")
    ),
    Kernel("FLOOR_MOD", "float32 float32 -> float32", prepare_plain(floor_mod_float), (1, 2)),
    *(
        Kernel("FLOOR_MOD", f"{t} {t} -> {t}", prepare_plain(floor_mod_integer), (1, 2))
        for t in ("int64", "int32", "int16", "int8")
    ),
    *valid(
        opt(until="tf-2.3"),
        *(replace(row, prepare=UNMODELLED_DIV) for row in DIV if row.signature.starts_with(TensorType.INT32)),
    ),
    *valid(tflite(until="tflite-2.14", cpu="arm64"), limit("DIV", np.divide, _LOOPS, (1, 2))),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), computing("DIV", DIV, Operation.DIVIDE)),
)


@dataclass(frozen=True, slots=True, eq=False)
class PowData:
    """Constants that depend on the shapes."""

    single: bool  # whether one exponent of another shape serves all
    shape: Shape


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the shapes alone."""
    a, b, _ = both(node)
    shape = broadcast_shape(node, a, b)
    return Prepared((shape,), PowData(a.shape != b.shape and prod(b.shape) == 1, shape), evaluate)


def evaluate(data: PowData, a: Array, b: Array) -> Array:
    """Source: PowImpl. Rounding: every product, or libm's. Overflow: int32 products wrap, else as x86 converts."""
    if a.dtype == np.int32 and (b < 0).any():
        raise UndefinedResultError("Pow", "negative exponent of an int32")
    if data.single and (whole := _whole_exponent(b.reshape(-1)[0])) >= 1:
        return _multiply(a, whole).reshape(data.shape)
    if a.dtype == np.float32:
        return powf(a, b)
    return floats_to_int32(np.power(a.astype(np.float64), b.astype(np.float64)))


def _whole_exponent(exponent: np.generic) -> int:
    real = float(exponent)
    if not abs(real) < 2**31:
        return 0
    whole = rounding_half_away(real)
    return whole if abs(np.float32(real) - np.float32(whole)) < np.float32(1e-5) else 0


def _multiply(a: Array, exponent: int) -> Array:
    """Square and multiply from the highest bit, every product held inside the type's finite range."""
    if exponent == 1:
        return np.array(a)
    low, high = lowest(a.dtype), highest(a.dtype)
    half = _multiply(a, exponent // 2)
    square = clamp_in_place(np.asarray(half * half), low, high)
    return clamp_in_place(np.asarray(square * a), low, high) if exponent % 2 else square


_POW = (
    Kernel("POW", "float32 float32 -> float32", prepare, (1, 1), exactness=SAME_LIBM),
    Kernel("POW", "int32 int32 -> int32", prepare, (1, 1)),
)


def _preparer(function: Callable[[Array, Array], Array]) -> Prepare:
    """Return a prepare that binds `function` of flat arrays."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        y, x = node.input(0), node.input(1)
        node.check(len(x.shape) == len(y.shape), "number of dimensions", x, expected=len(y.shape), got=len(x.shape))
        if prod(x.shape) < prod(y.shape):
            raise UndefinedResultError(node.op, "the source reads behind the end of a smaller x")
        return Prepared((y.shape,), function, evaluate_atan2)

    return prepare


def evaluate_atan2(function: Callable[[Array, Array], Array], y: Array, x: Array) -> Array:
    """Source: Atan2. Rounding: libm's."""
    return function(y.reshape(-1), x.reshape(-1)[: y.size]).reshape(y.shape)


def _half(y: Array, x: Array) -> Array:
    return atan2f(y.astype(np.float32), x.astype(np.float32)).astype(np.float16)


def _brain(y: Array, x: Array) -> Array:
    return to_bfloat16(atan2f(from_bfloat16(y), from_bfloat16(x)))


def _double(y: Array, x: Array) -> Array:
    return np.fromiter(map(math.atan2, y.tolist(), x.tolist()), np.float64, y.size)


_FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "float32": atan2f,
    "float64": _double,
    "float16": _half,
    "bfloat16": _brain,
}

_ATAN2 = tuple(
    Kernel("ATAN2", f"{t} {t} -> {t}", _preparer(function), (1, 1), exactness=SAME_LIBM)
    for t, function in _FUNCTIONS.items()
)

#: The rows of all operators above.
KERNELS = (*_DIVISION, *_POW, *_ATAN2)
