"""LOG_SOFTMAX: y = x - log(sum of exp(x)), over the last axis.

| operand | shape          | types                | quantization                                  |
|---------|----------------|----------------------|-----------------------------------------------|
| x       | rank 1 or more | float32, uint8, int8 | per tensor                                    |
| y       | as x           | as x                 | scale 16/256, zero point the highest code     |

In 2.5's reference resolver every result is the lowest code: constants are never prepared, and with a multiplier of 0 no
difference lies above the smallest one that counts.
Source: LiteRT 2.3 and TensorFlow 2.5, activations.cc LogSoftmaxPrepare, LogSoftmaxEval; reference/log_softmax.h
LogSoftmax; reference_integer_ops::LogSoftmax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.rows import as_rows, fixed_point_exps, row_maxima, sum_rows
from tflq.engine.kernels.families.unary import same_type
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.elementary import log_x_for_x_greater_than_or_equal_to_1
from tflq.engine.numerics.libm import expf, logf
from tflq.engine.numerics.multiplier import Multiplier, multiply_double_rounding
from tflq.engine.numerics.rounding import INT32_MIN, clamp, divide_by_pot_half_away, wrap_int32
from tflq.engine.numerics.scaling import calculate_input_radius, preprocess_log_softmax_scaling
from tflq.engine.numerics.stages import type_range
from tflq.typing import Array

#: Integer bits of the scaled differences and logarithms, of the sum of exps, and of the output.
DIFFERENCE_BITS, SUM_BITS, OUTPUT_BITS = 5, 12, 4

#: The search for a row's largest begins with it.
_LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms; tables by how far a code lies below its row's largest."""

    differences: Array  # 5 integer bits
    summands: Array  # exp of the difference, 12 integer bits; 0 beyond the radius
    radius: int  # LSB of input
    inverse: Multiplier  # from 5 integer bits back to LSB of input
    clamp: Clamp  # LSB of output


def check_quantized(node: Node) -> tuple[Operand, Operand]:
    """Return input and output of the quantized forms, checked."""
    x, y = same_type(node)
    _, high = type_range(x.type.label)
    node.check(bool(y.scale == np.float32(16 / 256)), "scale", y, expected="16/256", got=y.scale)
    node.check(y.zero_point == high, "zero point", y, expected=high, got=y.zero_point)
    node.check(len(x.shape) >= 1, "must have at least one dimension", x)
    return x, y


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with a beta of 1."""
    x, _ = check_quantized(node)
    scaling, inverse = preprocess_log_softmax_scaling(1.0, float(x.scale), DIFFERENCE_BITS)
    radius = calculate_input_radius(DIFFERENCE_BITS, scaling.shift)
    differences, _, summands = fixed_point_exps(scaling, radius, DIFFERENCE_BITS, SUM_BITS)
    data = OpData(differences, summands, radius, inverse, type_range(x.type.label))
    return Prepared((x.shape,), data, eval_quantized)


@filling(lambda data, x: (x.shape, x.dtype))
def eval_quantized(data: OpData, out: Array, x: Array) -> Call:
    """Source: LogSoftmax. Rounding: in exp, sum and logarithm as gemmlowp does; then half away. int32 wraps."""
    constants = data.differences, data.summands, data.radius, *data.inverse, *data.clamp
    return _log_softmax_rows.bound(as_rows(x), *constants, as_rows(out))


@in_pieces(8, x="r", out="r")
@compiled
def _log_softmax_rows(
    x: Array,
    differences: Array,
    summands: Array,
    radius: Int,
    mantissa: Int,
    shift: Int,
    low: Int,
    high: Int,
    out: Array,
) -> None:
    """Prepare guarantees: codes have 8 bits, `differences` and `summands` 256 entries. Eval guarantees: no row is
    empty, `out` has the shape of `x`.
    """
    rows, depth = x.shape
    for r in range(rows):
        largest = np.int64(x[r, 0])
        for c in range(1, depth):
            largest = max(largest, np.int64(x[r, c]))
        total = np.int64(0)
        for c in range(depth):
            total = wrap_int32(total + np.int64(summands[largest - np.int64(x[r, c])]))
        log_sum = log_x_for_x_greater_than_or_equal_to_1(total, SUM_BITS, DIFFERENCE_BITS)
        # Differences at or below this one would leave the output's range.
        farthest = max(
            -radius - np.int64(1), multiply_double_rounding(wrap_int32(log_sum + INT32_MIN), mantissa, shift)
        )
        for c in range(depth):
            below = largest - np.int64(x[r, c])
            if -below > farthest:
                real = wrap_int32(np.int64(differences[below]) - log_sum)
                code = divide_by_pot_half_away(real, 31 - DIFFERENCE_BITS - OUTPUT_BITS) + high
                out[r, c] = clamp(code, low, high)
            else:
                out[r, c] = low


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    x, _ = same_type(node)
    node.check(len(x.shape) >= 1, "must have at least one dimension", x)
    return Prepared((x.shape,), None, eval_float)


def _log_softmax_once(data: None, x: Array) -> Array:
    rows = as_rows(x)
    centred = rows - row_maxima(rows)
    return np.asarray(centred - logf(sum_rows(expf(centred)))).reshape(x.shape)


@filling(lambda _, x: (x.shape, x.dtype), once=_log_softmax_once)
def eval_float(data: None, out: Array, x: Array) -> Call:
    """Source: LogSoftmax (float). Rounding: float32; exp and log by the host's libm; the sum runs in order."""
    if expf.is_compiled_alike and logf.is_compiled_alike:
        return _log_softmax_floats.bound(as_rows(x), as_rows(out))
    return lambda: np.copyto(out, _log_softmax_once(data, x))


@in_pieces(40, x="r", out="r")
@compiled
def _log_softmax_floats(x: Array, out: Array) -> None:
    """Eval guarantees: `out` has the shape of `x`."""
    rows, depth = x.shape
    for r in range(rows):
        largest = np.float32(_LOWEST)
        for c in range(depth):
            if x[r, c] > largest:
                largest = x[r, c]
        total = np.float32(0)
        for c in range(depth):
            total += np.float32(math.exp(x[r, c] - largest))
        logarithm = np.float32(math.log(total))
        for c in range(depth):
            out[r, c] = (x[r, c] - largest) - logarithm


ROWS = (
    Kernel("LOG_SOFTMAX", "float32 -> float32", prepare_float, (1, 2), exactness=SAME_LIBM),
    *(Kernel("LOG_SOFTMAX", f"{t} -> {t}", prepare_quantized, (1, 2)) for t in ("uint8", "int8")),
)


def prepare_lowest(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the lowest code alone."""
    x, _ = check_quantized(node)
    low, _ = type_range(x.type.label)
    return Prepared((x.shape,), low, eval_lowest)


def eval_lowest(low: int, x: Array) -> Array:
    """Source: LogSoftmax. Rounding and overflow: none."""
    return np.full(x.shape, low, x.dtype)


LOWEST = tuple(Kernel("LOG_SOFTMAX", f"{t} -> {t}", prepare_lowest, (1, 2)) for t in ("uint8", "int8"))
