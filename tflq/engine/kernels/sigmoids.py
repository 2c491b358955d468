"""LOGISTIC and TANH of TensorFlow Lite Micro on int8: fixed-point functions of 32 bits, not a table of floats.

LOGISTIC, TANH: y = 1 / (1 + exp(-x)), y = tanh(x).

| operand | shape | types                                          | quantization                            |
|---------|-------|------------------------------------------------|-----------------------------------------|
| x       | any   | float32, float16, bfloat16, uint8, int8, int16 | per tensor; int16: zero point 0         |
| y       | as x  | as x                                           | LOGISTIC: scale 1/256; TANH: per tensor |
|         |       |                                                | int16: scale 2**-15, zero point 0       |

Source: LiteRT 2.3, activations.cc SigmoidPrepare, SigmoidEval, TanhPrepare, TanhEval; reference/logistic.h Logistic;
reference_integer_ops::Logistic, Tanh (int16).

| operand | shape | types | quantization                                                              |
|---------|-------|-------|---------------------------------------------------------------------------|
| x       | any   | int8  | per tensor                                                                |
| y       | as x  | int8  | LOGISTIC: taken to be 1/256, zero point -128; TANH: taken to be 1/128, 0  |

Source: tflite-micro (October 2026), logistic_common.cc CalculateArithmeticOpDataLogistic, tanh.cc
CalculateArithmeticOpData; reference_integer_ops::Logistic, Tanh (int8).

LOGISTIC and TANH of the optimized resolver.

int16: gemmlowp's fixed-point function if the scale is 2**-12 (TANH: or 2**-11), else the reference's table. float32:
Eigen's arrays from LiteRT 1.0 on; earlier floats, float16 and bfloat16 are not claimed.
int16 in 2.3 truncates scales that are no power of two to whole multiples of 2**-12. Multiples below 1 take gemmlowp's
functions, as the powers of two do; the others take the table. TANH doubles its input if the scale's nearest power of
two is 2**-11, and, below 2**-12, whenever it is not 2**-12. LOGISTIC starts its table again at its end: refused.
Source: LiteRT 2.3 activations.cc SigmoidEval, TanhEval; optimized_ops.h Logistic, Tanh; gemmlowp fixedpoint.h logistic,
tanh. TensorFlow 2.3.4's package for x86-64, by its outputs for 33 scales of 2**-15 to 2**-8, and activations.cc
TanhPrepare, SigmoidPrepare; reference_integer_ops::Logistic, Tanh (int16).

LOGISTIC and TANH of r1.15 on int16: gemmlowp's fixed-point functions in 16 bits, of an input in Q3.12.

| operand | shape | types | quantization                                        |
|---------|-------|-------|-----------------------------------------------------|
| x       | any   | int16 | scale 2**-12 (TANH also 2**-11), zero point 0       |
| y       | as x  | int16 | scale 2**-15, zero point 0                          |

Source: TensorFlow r1.15 lite/kernels/activations.cc SigmoidPrepare, TanhPrepare; reference_ops.h Logistic, Tanh.

LOGISTIC and TANH by XNNPACK. Floats: tflq/engine/kernels/families/xnnpack.py.

Tables of 8-bit codes, for any scale of the output: tflq/engine/kernels/families/xnnpack.py.

Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK's tables of unary operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.kernels.checks import require_zero_point_zero
from tflq.engine.kernels.families.unary import UNCLAIMED, narrow_floats, prepare_tabulated, same_type, unclaimed_floats
from tflq.engine.kernels.families.xnnpack import applying, sigmoid, tabulated
from tflq.engine.kernels.kernel import (
    EXACT,
    SAME_LIBM,
    Call,
    Exactness,
    Kernel,
    Node,
    Operand,
    Prepare,
    Prepared,
    filling,
    valid,
)
from tflq.engine.kernels.validity import micro, opt, tf1, xnnpack
from tflq.engine.numerics import eigen
from tflq.engine.numerics import xnnpack as xnnpack_functions
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Shift
from tflq.engine.numerics.elementary import logistic_into, tanh_into
from tflq.engine.numerics.libm import Elementwise, expf, over, tanhf
from tflq.engine.numerics.multiplier import calculate_input_radius, check_log2, quantize_multiplier
from tflq.engine.numerics.tables import (
    INPUT_INTEGER_BITS,
    logistic_int8,
    logistic_int16_into,
    look_up_8bit,
    sigmoid_multiplier,
    tanh_int8,
    tanh_int16_into,
)
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array

#: Beyond these the float form takes 1, and exp(x).
UPPER, LOWER = 16.619047164916992188, -9.0


def sigmoid_reference(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) in float32."""
    return np.asarray(np.float32(1) / (np.float32(1) + expf(-x)))


def prepare_logistic_8bit(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    _, y = same_type(node)
    node.check(bool(y.scale == np.float32(1 / 256)), "scale", y, expected="1/256", got=y.scale)
    return prepare_tabulated(node, sigmoid_reference)


def prepare_logistic_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the published table of the sigmoid."""
    x, y = same_type(node)
    require_zero_point_zero(node, node.input(0), node.outputs[0])
    node.check(bool(y.scale == np.float32(1 / 32768)), "scale", y, expected="1/32768", got=y.scale)
    return Prepared((x.shape,), _multiplier(node, x, 0), eval_logistic_int16)


def _multiplier(node: Node, x: Operand, largest_pot_shift: int) -> tuple[int, int]:
    """Return multiplier and shift of 16-bit inputs; refuse a multiplier that int32 does not hold."""
    multiplier, shift = sigmoid_multiplier(x.scale, largest_pot_shift)
    if multiplier >= 2**31:
        raise UndefinedResultError(node.op, f"an input scale of {x.scale:g}: the multiplier is beyond int32")
    return multiplier, shift


@filling(lambda _multiplier, x: (x.shape, np.int16))
def eval_logistic_int16(multiplier: tuple[int, int], out: Array, x: Array) -> Call:
    """Source: reference_integer_ops::Logistic. Rounding: as in logistic_int16."""
    return logistic_int16_into.bound(np.asarray(x, order="C").reshape(-1), *multiplier, out.reshape(-1))


def _logistic(x: Array) -> Array:
    low = x < LOWER
    grown = expf(np.where(low, x, -x))
    return np.where(x > UPPER, np.float32(1), np.where(low, grown, np.float32(1) / (np.float32(1) + grown)))


@compiled
def _logistic_element(value: Real) -> Real:
    if value > np.float32(UPPER):
        return np.float32(1)
    if value < np.float32(LOWER):
        return math.exp(value)
    return np.float32(1) / (np.float32(1) + math.exp(-value))


#: Source: Logistic (float).
logistic = Elementwise(over(_logistic_element, 16), _logistic, (expf,))

LOGISTIC = (
    *narrow_floats("LOGISTIC", logistic, (1, 3)),
    *(Kernel("LOGISTIC", f"{t} -> {t}", prepare_logistic_8bit, (1, 3)) for t in ("uint8", "int8")),
    Kernel("LOGISTIC", "int16 -> int16", prepare_logistic_int16, (1, 3)),
)


def prepare_tanh_8bit(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a table of 256 codes."""
    return prepare_tabulated(node, tanhf)


def prepare_tanh_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the published table of the sigmoid."""
    x, y = same_type(node)
    require_zero_point_zero(node, node.input(0), node.outputs[0])
    node.check(bool(y.scale > 0) and check_log2(y.scale) == (-15, True), "scale", y, expected="2**-15", got=y.scale)
    return Prepared((x.shape,), _multiplier(node, x, 1), eval_tanh_int16)


@filling(lambda _multiplier, x: (x.shape, np.int16))
def eval_tanh_int16(multiplier: tuple[int, int], out: Array, x: Array) -> Call:
    """Source: reference_integer_ops::Tanh. Rounding: as in tanh_int16."""
    return tanh_int16_into.bound(np.asarray(x, order="C").reshape(-1), *multiplier, out.reshape(-1))


TANH = (
    *narrow_floats("TANH", tanhf, (1, 3)),
    *(Kernel("TANH", f"{t} -> {t}", prepare_tanh_8bit, (1, 3)) for t in ("uint8", "int8")),
    Kernel("TANH", "int16 -> int16", prepare_tanh_int16, (1, 3)),
)

_REFERENCE = (*LOGISTIC, *TANH)


def prepare_with(function: Callable[..., Array], zero_point: int | None) -> Prepare:
    """Return a prepare that tabulates `function` of all codes; the output must have `zero_point`, if given."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = same_type(node)
        if zero_point is not None:
            node.check(y.zero_point == zero_point, "zero point", y, expected=zero_point, got=y.zero_point)
        real = np.float64(x.scale) * np.float64(1 << (31 - INPUT_INTEGER_BITS))
        radius = calculate_input_radius(INPUT_INTEGER_BITS, quantize_multiplier(float(real))[1])
        codes = np.arange(256, dtype=np.uint8).view(np.int8)
        centred = codes.astype(np.int32) - np.int32(x.zero_point)
        return Prepared((x.shape,), function(centred, radius, arithmetic.requantize(real)), evaluate)

    return prepare


def evaluate(table: Array, x: Array) -> Array:
    """Source: Logistic, Tanh (int8). Rounding: when the table was computed."""
    return look_up_8bit(table, x)


_MICRO = valid(
    micro(),
    Kernel("LOGISTIC", "int8 -> int8", prepare_with(logistic_int8, -128), (1, 3)),
    Kernel("TANH", "int8 -> int8", prepare_with(tanh_int8, None), (1, 3)),
)


#: Integer bits of the input: Q3.12.
INTEGER_BITS = 3


def prepare_logistic_int16_optimized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use the function if the reference's multiplier is 0: the scale is its power of two."""
    prepared = prepare_logistic_int16(node, arithmetic)
    multiplier, _ = prepared.data
    return prepared if multiplier else Prepared(prepared.shapes, None, eval_logistic_q3)


def eval_logistic_q3(data: None, x: Array) -> Array:
    """Source: Logistic (int16). Rounding: gemmlowp's, in every step."""
    out = np.empty(x.shape, np.int16)
    logistic_into(np.ascontiguousarray(x).reshape(-1), INTEGER_BITS, 16, out.reshape(-1))
    return out


def prepare_tanh_int16_optimized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use the function if the reference's multiplier is 0: the scale is one of its powers of two."""
    prepared = prepare_tanh_int16(node, arithmetic)
    multiplier, left_shift = prepared.data
    return prepared if multiplier else Prepared(prepared.shapes, left_shift, eval_tanh_q3)


def eval_tanh_q3(left_shift: int, x: Array) -> Array:
    """Source: Tanh (int16). Rounding: gemmlowp's, in every step. Overflow: a shift of one bit saturates."""
    out = np.empty(x.shape, np.int16)
    shifted = np.clip(x.astype(np.int32) << left_shift, -(2**15), 2**15 - 1).astype(np.int16)
    tanh_into(shifted.reshape(-1), INTEGER_BITS, 16, out.reshape(-1))
    return out


def _row(op: str, function: Callable[[Array], Array], exactness: Exactness) -> Kernel:
    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, _ = same_type(node)
        return Prepared((x.shape,), None, lambda _, x: function(x))

    return Kernel(op, "float32 -> float32", prepare, (1, 3), exactness=exactness)


#: Units of the table in 2**-12.
_UNITS = 3

#: The first element of LOGISTIC's table of 256 steps whose neighbour lies beyond it, in units of the table.
_END = 255 << 9


@dataclass(frozen=True, slots=True, eq=False)
class TableData:
    """Constants of LOGISTIC by table."""

    op: str
    multiplier: int  # LSB of input -> units of the table


def prepare_truncated_logistic(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check like the reference kernel."""
    shapes = prepare_logistic_int16(node, arithmetic).shapes
    x = node.input(0)
    exponent, is_pot = check_log2(x.scale)
    multiple = 0 if is_pot and exponent == -12 else int(float(x.scale) * 4096.0)
    if multiple == 0:
        return Prepared(shapes, None, eval_logistic_q3)
    return Prepared(shapes, TableData(node.op, _UNITS * multiple), eval_truncated_logistic)


def eval_truncated_logistic(data: TableData, x: Array) -> Array:
    """Source: Logistic (int16). Rounding: as in logistic_int16."""
    if x.size and np.abs(x.astype(np.int64)).max() * data.multiplier >= _END:
        raise UndefinedResultError(data.op, "inputs beyond the table wrap around to its start")
    return eval_logistic_int16((data.multiplier, 0), x)


def prepare_truncated_tanh(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Check like the reference kernel."""
    shapes = prepare_tanh_int16(node, arithmetic).shapes
    x = node.input(0)
    exponent, is_pot = check_log2(x.scale)
    shift = exponent + 12
    multiple = 0 if is_pot and shift in (0, 1) else int(float(x.scale) * 4096.0)
    if multiple == 0:
        return Prepared(shapes, min(abs(shift), 1), eval_tanh_q3)
    return Prepared(shapes, (_UNITS * multiple << (shift == 1), 0), eval_tanh_int16)


_OPTIMIZED = (
    *valid(
        opt(),
        Kernel("LOGISTIC", "int16 -> int16", prepare_logistic_int16_optimized, (1, 3)),
        Kernel("TANH", "int16 -> int16", prepare_tanh_int16_optimized, (1, 3)),
    ),
    *valid(opt(until="tflite-2.14"), *unclaimed_floats(LOGISTIC), *unclaimed_floats(TANH)),
    *valid(
        opt("litert-1.0"),
        _row("LOGISTIC", eigen.logistic, SAME_LIBM),
        _row("TANH", eigen.tanh, EXACT),
        *(
            replace(row, exactness=UNCLAIMED)
            for row in (*LOGISTIC, *TANH)
            if row.signature.makes(TensorType.FLOAT16, TensorType.BFLOAT16)
        ),
    ),
    *valid(
        opt(until="tf-2.3"),
        Kernel("LOGISTIC", "int16 -> int16", prepare_truncated_logistic, (1, 3)),
        Kernel("TANH", "int16 -> int16", prepare_truncated_tanh, (1, 3)),
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The function, and by how many bits codes are shifted before it."""

    function: Callable[..., None]  # (Q3.12, integer bits, width, out in Q0.15)
    shift: Shift  # to the left


def prepare_with_tf1(function: Callable[..., None], largest_shift: int) -> Prepare:
    """Return a prepare for a function of Q3.12 that takes inputs up to `largest_shift` bits coarser."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = same_type(node)
        require_zero_point_zero(node, node.input(0), node.outputs[0])
        shift = Shift(_log2(node, 0) + 12)
        node.check(0 <= shift <= largest_shift, "scale", x, expected=f"2**-12 to 2**{largest_shift - 12}", got=x.scale)
        node.check(_log2(node, 1) == -15, "scale", y, expected="2**-15", got=y.scale)
        return Prepared((x.shape,), OpData(function, shift), evaluate_tf1)

    return prepare


def _log2(node: Node, which: int) -> int:
    operand = (node.input(0), node.outputs[0])[which]
    exponent, is_pot = check_log2(operand.scale)
    node.check(is_pot, "scale must be a power of two", operand, got=operand.scale)
    return exponent


def evaluate_tf1(data: OpData, x: Array) -> Array:
    """Source: Logistic, Tanh (int16). Rounding: as in the functions. Overflow: the shift saturates."""
    shifted = np.clip(x.astype(np.int32) << data.shift, -32768, 32767).astype(np.int16)
    out = np.empty(x.shape, np.int16)
    data.function(np.ascontiguousarray(shifted).reshape(-1), INTEGER_BITS, 16, out.reshape(-1))
    return out


_TF1 = valid(
    tf1(),
    Kernel("LOGISTIC", "int16 -> int16", prepare_with_tf1(logistic_into, 0), (1, 2)),
    Kernel("TANH", "int16 -> int16", prepare_with_tf1(tanh_into, 1), (1, 2)),
)


_XNNPACK = (
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        applying("LOGISTIC", LOGISTIC, lambda _, arithmetic: arithmetic.xnnpack_functions.logistic),
        applying("TANH", TANH, lambda *_: xnnpack_functions.TANH),
    ),
    *valid(
        xnnpack("litert-2.1"),
        *tabulated("LOGISTIC", ("uint8", "int8"), sigmoid),
        *tabulated("TANH", ("uint8", "int8"), tanhf),
    ),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_OPTIMIZED, *_TF1, *_XNNPACK)
