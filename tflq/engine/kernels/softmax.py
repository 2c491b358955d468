"""SOFTMAX and LOG_SOFTMAX over the last axis.

Operands of SOFTMAX, checked.

SOFTMAX of 8-bit codes: a float32 table of exps, summed in order, one reciprocal, one product an element.

Exactness: exact on the same libm (expf), which hardly ever changes a code. Source: LiteRT 2.3 optimized_ops.h
PopulateSoftmaxLookupTable, Softmax, QuantizeSoftmaxOutput.

LOG_SOFTMAX: y = x - log(sum of exp(x)), over the last axis.

| operand | shape          | types                | quantization                                  |
|---------|----------------|----------------------|-----------------------------------------------|
| x       | rank 1 or more | float32, uint8, int8 | per tensor                                    |
| y       | as x           | as x                 | scale 16/256, zero point the highest code     |

In 2.5's reference resolver every result is the lowest code: constants are never prepared, and with a multiplier of 0 no
difference lies above the smallest one that counts.
Source: LiteRT 2.3 and TensorFlow 2.5, activations.cc LogSoftmaxPrepare, LogSoftmaxEval; reference/log_softmax.h
LogSoftmax; reference_integer_ops::LogSoftmax.

SOFTMAX: y = exp(beta * x) / sum of exp(beta * x), over the last axis.

| operand | shape          | types                                | quantization                                  |
|---------|----------------|--------------------------------------|-----------------------------------------------|
| x       | rank 1 or more | float32, float16, uint8, int8, int16 | per tensor; int16: zero point 0               |
| y       | as x           | as x; for uint8, int8 also int16     | int8: 1/256, -128; int16 of int16: 1/32768, 0 |

Options: beta.
8 bits: integers throughout; if the sum of exps reaches 512 the source aborts and this raises. int16: two tables.
Only LiteRT's full resolver registers version 4: its 8-bit codes go through softmax.py, floats are refused.
Source: LiteRT 2.3, activations.cc SoftmaxPrepare, SoftmaxEval; register.cc; reference/softmax.h Softmax, SoftmaxInt16,
SoftMaxCalculateExp.

SOFTMAX and LOG_SOFTMAX of the optimized resolver.

On AArch64 it rounds half away for uint8, too, whose zero point counts; codes to codes of the same type have a 16-bit
table of exps, an integer sum and one multiplier a row. SOFTMAX of float32 is as Eigen's arrays compute it:
differences, a polynomial exp, sums by packets, one inverse a row. LOG_SOFTMAX of float32 on x86-64 is alike, with a
logarithm a row. The reference resolver up to 2.5 runs both forms of SOFTMAX. LOG_SOFTMAX of 8-bit codes: a float32
table of exps, summed in order, one logarithm, one product an element. In 2.5, codes far below their row's largest are
looked up beside the table, where other data lie: refused. In 2.3, int8 runs the reference kernel. Exactness: exact on
the same libm (expf, logf), which hardly ever changes a code. Source: LiteRT 2.3 optimized_ops.h
PopulateSoftmaxLookupTable, Softmax, SoftmaxImpl, QuantizeSoftmaxOutput, PopulateSoftmaxUInt8LookupTable,
SoftmaxInt8LUT with TFLITE_SOFTMAX_USE_UINT16_LUT, LogSoftmax. TensorFlow 2.3 activations.cc LogSoftmaxEval.
TensorFlow 2.5.3's package for x86-64, seen from outside: two codes in a row, every distance of 0 to 255.

SOFTMAX of float32 by XNNPACK on x86-64.

The arithmetic: tflq/engine/kernels/families/xnnpack.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitSoftmaxNode.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_rank_from, require_zero_point_zero
from tflq.engine.kernels.delegation import delegate, has_shape
from tflq.engine.kernels.families.reduction import as_rows, fixed_point_exps, row_maxima, sum_rows
from tflq.engine.kernels.families.unary import same_type, unclaimed_floats
from tflq.engine.kernels.families.xnnpack import softmax
from tflq.engine.kernels.kernel import SAME_LIBM, Call, Kernel, Node, Operand, Prepared, filling, valid
from tflq.engine.kernels.validity import opt, ref, xnnpack
from tflq.engine.numerics import eigen
from tflq.engine.numerics import eigen as eigen_activations
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.elementary import log_x_for_x_greater_than_or_equal_to_1, reciprocal
from tflq.engine.numerics.libm import expf, logf
from tflq.engine.numerics.multiplier import (
    Multiplier,
    calculate_input_radius,
    multiply_double_rounding,
    preprocess_log_softmax_scaling,
    preprocess_softmax_scaling,
    quantize_multiplier,
)
from tflq.engine.numerics.rounding import (
    INT32_MIN,
    clamp,
    count_leading_zeros,
    divide_by_pot_half_away,
    doubling_high_mul,
    floats_to_int32,
    nearest_half_away,
    wrap_int32,
)
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.engine.numerics.tables import look_up_16bit, table_16bit
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


def check_8bit(node: Node) -> tuple[Operand, Operand]:
    """Return input and output of the 8-bit forms, checked."""
    x, y = operands(node)
    if x.type == y.type == TensorType.INT8:
        check_output(node, y, 1 / 256, -128)
    return x, y


def operands(node: Node) -> tuple[Operand, Operand]:
    """Return input and output; refuse a scalar."""
    x, y = node.input(0), node.outputs[0]
    node.check(len(x.shape) >= 1, "must have at least one dimension", x, got=list(x.shape))
    return x, y


def check_output(node: Node, y: Operand, scale: float, zero_point: int) -> None:
    """Refuse an output of another zero point, or of a scale that is not within 0.1 %."""
    node.check(y.zero_point == zero_point, "zero point", y, expected=zero_point, got=y.zero_point)
    near = bool(abs(y.scale - np.float32(scale)) <= np.float32(0.001) * np.float32(scale))
    node.check(near, "scale", y, expected=scale, got=y.scale)


#: Elements that are worked on together, and bytes that each takes: floats, their integers, and what rounds them.
_BLOCK, _ELEMENT_BYTES = 1 << 16, 40


@dataclass(frozen=True, slots=True, eq=False)
class FloatTableData:
    """Constants of the 8-bit forms."""

    exps: Array  # by how far a code lies below its row's largest, float32
    scale: np.float32  # of the output
    zero_point: ZeroPoint  # LSB of output
    dtype: np.dtype[Any]
    round: Callable[[Array], Array]  # float32, to whole numbers


def exps_below(scale: np.float32, beta: np.float32) -> Array:
    """Return exps, float32, by how far a code lies below its row's largest. Source: PopulateSoftmaxLookupTable."""
    return expf(-scale * beta * np.arange(256, dtype=np.float32))


def prepare_table(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute -scale * beta as a float32 product. uint8 has no zero point."""
    x, y = check_8bit(node)
    dtype = CARRIER[y.type]
    is_unsigned = y.type == TensorType.UINT8
    data = FloatTableData(
        exps=exps_below(x.scale, np.float32(node.options["beta"])),
        scale=y.scale,
        zero_point=ZeroPoint(0) if is_unsigned else y.zero_point,
        dtype=dtype,
        round=half_added if is_unsigned else nearest_half_away,
    )
    scratch = _ELEMENT_BYTES * max(_BLOCK, x.shape[-1])
    return Prepared((x.shape,), data, eval_table, scratch=scratch)


def half_added(x: Array) -> Array:
    """Return trunc(x + 1/2), the sum in float32. Source: QuantizeSoftmaxOutput<uint8_t>, not on AArch64."""
    return np.asarray(np.trunc(x + np.float32(0.5)))


@filling(lambda data, x: (x.shape, data.dtype))
def eval_table(data: FloatTableData, out: Array, x: Array) -> Call:
    """Source: Softmax. Rounding: float32 throughout, then `round`. Overflow: none."""
    rows, codes = as_rows(x), as_rows(out)
    step = max(1, _BLOCK // max(1, rows.shape[-1]))
    room = np.empty((min(step, len(rows)), rows.shape[-1]), np.float32)

    def call() -> None:
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            real = room[: len(rows[block])]
            _scale_rows(rows[block], data.exps, data.scale, real)
            whole = floats_to_int32(data.round(real)) + np.int32(data.zero_point)
            codes[block] = np.clip(whole, *type_range(data.dtype))

    return call


@in_pieces(4, x="r", out="r")
@compiled
def _scale_rows(x: Array, exps: Array, scale: Real, out: Array) -> None:
    """Prepare guarantees: codes have 8 bits and `exps` 256 entries. Eval guarantees: no row is empty, `out` has the
    shape of `x`.
    """
    rows, depth = x.shape
    for r in range(rows):
        largest = np.int64(x[r, 0])
        for c in range(1, depth):
            largest = max(largest, np.int64(x[r, c]))
        total = np.float32(0)
        for c in range(depth):
            total += exps[largest - np.int64(x[r, c])]
        inverse = np.float32(1) / np.float32(total * scale)
        for c in range(depth):
            out[r, c] = exps[largest - np.int64(x[r, c])] * inverse


ROWS = tuple(
    Kernel("SOFTMAX", f"{t} -> {t}|int16", prepare_table, (1, 4), exactness=SAME_LIBM) for t in ("uint8", "int8")
)


#: Integer bits of the scaled differences and logarithms, of the sum of exps, and of the output.
LOG_SOFTMAX_DIFFERENCE_BITS, LOG_SOFTMAX_SUM_BITS, OUTPUT_BITS = 5, 12, 4


@dataclass(frozen=True, slots=True, eq=False)
class LogSoftmaxData:
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
    require_rank_from(node, x, 1)
    return x, y


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with a beta of 1."""
    x, _ = check_quantized(node)
    scaling, inverse = preprocess_log_softmax_scaling(1.0, float(x.scale), LOG_SOFTMAX_DIFFERENCE_BITS)
    radius = calculate_input_radius(LOG_SOFTMAX_DIFFERENCE_BITS, scaling.shift)
    differences, _, summands = fixed_point_exps(scaling, radius, LOG_SOFTMAX_DIFFERENCE_BITS, LOG_SOFTMAX_SUM_BITS)
    data = LogSoftmaxData(differences, summands, radius, inverse, type_range(x.type.label))
    return Prepared((x.shape,), data, eval_quantized)


@filling(lambda data, x: (x.shape, x.dtype))
def eval_quantized(data: LogSoftmaxData, out: Array, x: Array) -> Call:
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
        log_sum = log_x_for_x_greater_than_or_equal_to_1(total, LOG_SOFTMAX_SUM_BITS, LOG_SOFTMAX_DIFFERENCE_BITS)
        # Differences at or below this one would leave the output's range.
        farthest = max(
            -radius - np.int64(1), multiply_double_rounding(wrap_int32(log_sum + INT32_MIN), mantissa, shift)
        )
        for c in range(depth):
            below = largest - np.int64(x[r, c])
            if -below > farthest:
                real = wrap_int32(np.int64(differences[below]) - log_sum)
                code = divide_by_pot_half_away(real, 31 - LOG_SOFTMAX_DIFFERENCE_BITS - OUTPUT_BITS) + high
                out[r, c] = clamp(code, low, high)
            else:
                out[r, c] = low


def prepare_float_log_softmax(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    x, _ = same_type(node)
    require_rank_from(node, x, 1)
    return Prepared((x.shape,), None, eval_float_log_softmax)


def _log_softmax_once(data: None, x: Array) -> Array:
    rows = as_rows(x)
    centred = rows - row_maxima(rows)
    return np.asarray(centred - logf(sum_rows(expf(centred)))).reshape(x.shape)


@filling(lambda _, x: (x.shape, x.dtype), once=_log_softmax_once)
def eval_float_log_softmax(data: None, out: Array, x: Array) -> Call:
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


LOG_SOFTMAX_ROWS = (
    Kernel("LOG_SOFTMAX", "float32 -> float32", prepare_float_log_softmax, (1, 2), exactness=SAME_LIBM),
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


#: Integer bits of the scaled differences, and of the sum of exps.
DIFFERENCE_BITS, SUM_BITS = 5, 12

#: The least value of a row's largest float.
_LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the 8-bit forms; tables by how far a code lies below its row's largest."""

    exps: Array  # exp of the difference, Q0.31
    summands: Array  # the same with 12 integer bits; 0 beyond the radius
    radius: int  # differences beyond it give the lowest code, LSB of input
    clamp: Clamp  # LSB of output
    bits: int  # of the output
    dtype: np.dtype[Any]


def prepare_8bit(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute beta * scale as a float64 product."""
    x, y = check_8bit(node)
    scaling = preprocess_softmax_scaling(float(node.options["beta"]), float(x.scale), DIFFERENCE_BITS)
    radius = calculate_input_radius(DIFFERENCE_BITS, scaling.shift)
    _, exps, summands = fixed_point_exps(scaling, radius, DIFFERENCE_BITS, SUM_BITS)
    dtype = CARRIER[y.type]
    data = OpData(exps, summands, radius, type_range(dtype), 8 * dtype.itemsize, dtype)
    return Prepared((x.shape,), data, eval_8bit)


@filling(lambda data, x: (x.shape, data.dtype))
def eval_8bit(data: OpData, out: Array, x: Array) -> Call:
    """Source: Softmax. Rounding: in exp, sum and reciprocal as gemmlowp does; then half up, then half away."""
    rows = as_rows(x)
    broken = np.zeros(len(rows), np.bool_)
    constants = data.exps, data.summands, data.radius, *data.clamp, data.bits
    return partial(_softmax_checked, _softmax_rows.bound(rows, *constants, as_rows(out), broken), broken)


def _softmax_checked(softmax: Call, broken: Array) -> None:
    softmax()
    if broken.any():
        row = broken.argmax()
        broken.fill(False)
        raise UndefinedResultError("Softmax", f"the exps of row {row} sum to 512 or more")


@writes("out", "broken")
@in_pieces(8, x="r", out="r", broken="r")
@compiled
def _softmax_rows(
    x: Array, exps: Array, summands: Array, radius: Int, low: Int, high: Int, bits: Int, out: Array, broken: Array
) -> None:
    """Compute row by row; `broken` marks rows whose sum is too large.

    Prepare guarantees: codes have 8 bits, `exps` and `summands` 256 entries. Eval guarantees: no row is empty, `out`
    has the shape of `x`, `broken` an element for every row.
    """
    rows, depth = x.shape
    for r in range(rows):
        largest = np.int64(x[r, 0])
        for c in range(1, depth):
            largest = max(largest, np.int64(x[r, c]))
        total = np.int64(0)
        for c in range(depth):
            total += np.int64(summands[largest - np.int64(x[r, c])])
        scale, over = reciprocal(total & np.int64(0xFFFFFFFF), SUM_BITS)
        exponent = over + np.int64(31) - bits
        if exponent < 0 or exponent > 31:
            broken[r] = True
            continue
        for c in range(depth):
            below = largest - np.int64(x[r, c])
            code = divide_by_pot_half_away(doubling_high_mul(scale, np.int64(exps[below]), 32), exponent)
            out[r, c] = clamp(code + low, low, high) if below <= radius else low


@dataclass(frozen=True, slots=True, eq=False)
class Int16Data:
    """Constants of the int16 form."""

    stage: OutputStage  # LSB of input -> 10/65535
    exps: Array  # 513 samples of exp over [-10, 0], Q15
    reciprocals: Array  # 513 samples of 1 / (1 + x) over [0, 1], Q15


@cache
def _exp_table() -> Array:
    return table_16bit(_every(math.exp), np.float64(10.0 / 65535), 32767, np.float64(2.0 / 65535), 0)


@cache
def _reciprocal_table() -> Array:
    return table_16bit(_reciprocal, np.float64(1.0 / 65535), -32768, np.float64(2.0 / 65535), 0)


def _every(function: Any) -> Any:
    return lambda x: np.array([function(v) for v in x.tolist()], np.float64)


def _reciprocal(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + x))


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Multiply scale * beta in float32, then divide in float64."""
    x, y = operands(node)
    require_zero_point_zero(node, x)
    check_output(node, y, 1 / 32768, 0)
    real = np.float64(x.scale * np.float32(node.options["beta"])) / (10.0 / 65535.0)
    data = Int16Data(arithmetic.requantize(real), _exp_table(), _reciprocal_table())
    return Prepared((x.shape,), data, eval_int16)


def eval_int16(data: Int16Data, x: Array) -> Array:
    """Source: SoftmaxInt16. Rounding: by the stage, in both tables, half up in the sum's shift and in the product."""
    rows = as_rows(x).astype(np.int32)
    if not rows.size:
        return np.empty(x.shape, np.int16)
    scaled = data.stage(rows - rows.max(axis=1, keepdims=True)).astype(np.int64)
    exps = look_up_16bit(data.exps, np.clip(scaled + 32767, -32768, 32767).astype(np.int16))
    mantissas, headroom = np.empty(len(rows), np.int16), np.empty(len(rows), np.int64)
    _normalise_sums(exps, mantissas, headroom)
    out = np.empty(rows.shape, np.int16)
    _divide_rows(exps, look_up_16bit(data.reciprocals, mantissas), headroom, out)
    return out.reshape(x.shape)


@in_pieces(exps="r", mantissas="r", headroom="r")
@compiled
def _normalise_sums(exps: Array, mantissas: Array, headroom: Array) -> None:
    """Write sums as 1 + m: `mantissas` m over [0, 1] as int16 codes, `headroom` the zero bits above the sum.

    Eval guarantees: `mantissas` and `headroom` have an element for every row.
    """
    rows, depth = exps.shape
    for r in range(rows):
        total = np.int64(0)
        for c in range(depth):
            total = wrap_int32(total + np.int64(exps[r, c]))
        headroom[r] = count_leading_zeros(total, 32)
        shifted = wrap_int32(((total << (headroom[r] - np.int64(1))) + np.int64(1 << 13)) >> np.int64(14))
        mantissas[r] = clamp(shifted - np.int64((1 << 15) + (1 << 16)), -32768, 32767)


@in_pieces(exps="r", reciprocals="r", headroom="r", out="r")
@compiled
def _divide_rows(exps: Array, reciprocals: Array, headroom: Array, out: Array) -> None:
    """Eval guarantees: `reciprocals` and `headroom` have an element for every row, `out` has the shape of `exps`."""
    rows, depth = exps.shape
    for r in range(rows):
        shift = np.int64(31) - headroom[r]
        half = np.int64(1) << (shift - np.int64(1))
        for c in range(depth):
            out[r, c] = clamp((np.int64(exps[r, c]) * np.int64(reciprocals[r]) + half) >> shift, 0, 32767)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare beta alone."""
    x, _ = operands(node)
    return Prepared((x.shape,), np.float32(node.options["beta"]), eval_float)


def _softmax_once(beta: np.float32, x: Array) -> Array:
    rows = as_rows(x)
    real = rows.astype(np.float32)
    exps = expf((real - row_maxima(rows).astype(np.float32)) * beta)
    kept = exps.astype(x.dtype)
    return np.asarray((kept.astype(np.float32) / sum_rows(exps)).astype(x.dtype)).reshape(x.shape)


@filling(lambda beta, x: (x.shape, x.dtype), once=_softmax_once)
def eval_float(beta: np.float32, out: Array, x: Array) -> Call:
    """Source: Softmax (float). Rounding: float32; exp by the host's libm; the sum runs along the axis in order."""
    if x.dtype == np.float32 and expf.is_compiled_alike:
        return _softmax_floats.bound(as_rows(x), beta, as_rows(out))

    def call() -> None:
        out[...] = _softmax_once(beta, x)

    return call


@in_pieces(40, x="r", out="r")
@compiled
def _softmax_floats(x: Array, beta: Real, out: Array) -> None:
    """Eval guarantees: `out` has the shape of `x`."""
    rows, depth = x.shape
    for r in range(rows):
        largest = np.float32(_LOWEST)
        for c in range(depth):
            if x[r, c] > largest:
                largest = x[r, c]
        total = np.float32(0)
        for c in range(depth):
            out[r, c] = math.exp((x[r, c] - largest) * beta)
            total += out[r, c]
        for c in range(depth):
            out[r, c] /= total


_REFERENCE = (
    *(Kernel("SOFTMAX", f"{t} -> {t}", prepare_float, (1, 3), exactness=SAME_LIBM) for t in ("float32", "float16")),
    *(Kernel("SOFTMAX", f"{t} -> {t}|int16", prepare_8bit, (1, 3)) for t in ("uint8", "int8")),
    Kernel("SOFTMAX", "int16 -> int16", prepare_int16, (1, 3)),
    *(Kernel("SOFTMAX", f"{t} -> {t}|int16", prepare_table, (4, 4), exactness=SAME_LIBM) for t in ("uint8", "int8")),
    Kernel("SOFTMAX", "int16 -> int16", prepare_int16, (4, 4)),
    *LOG_SOFTMAX_ROWS,
    *valid(ref(until="tf-2.5"), *LOWEST),
)


def prepare_by_eigen(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare beta alone."""
    prepared = prepare_float(node, arithmetic)
    return prepared if 0 in node.input(0).shape else Prepared(prepared.shapes, prepared.data, eval_by_eigen)


def eval_by_eigen(beta: np.float32, x: Array) -> Array:
    """Rounding: float32 throughout. The C library makes the last exps, as many as the size is no multiple of four."""
    rows = as_rows(x)
    exps = eigen_activations.exp((rows - rows.max(axis=1, keepdims=True)) * beta)
    return np.asarray(exps * (np.float32(1) / eigen.row_sums(exps))[:, None]).reshape(x.shape)


_FLOAT = (Kernel("SOFTMAX", "float32 -> float32", prepare_by_eigen, (1, 3), exactness=SAME_LIBM),)


@dataclass(frozen=True, slots=True, eq=False)
class IntegerData:
    """Constants."""

    exps: Array  # by how far a code lies below its row's largest, times 65535, int32
    scale: np.float32  # of the output
    zero_point: ZeroPoint  # LSB of output
    dtype: np.dtype[Any]


def prepare_integer_table(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Multiply scale * beta in float32; exps are scaled and rounded half up in float64."""
    x, y = check_8bit(node)
    dtype = CARRIER[y.type]
    steps = x.scale * np.float32(node.options["beta"]) * -np.arange(256, dtype=np.float32)
    exps = np.trunc((expf(steps) * np.float32(65535)).astype(np.float64) + 0.5).clip(None, 65535).astype(np.int32)
    return Prepared((x.shape,), IntegerData(exps, y.scale, y.zero_point, dtype), eval_integer_table)


def eval_integer_table(data: IntegerData, x: Array) -> Array:
    """Source: SoftmaxInt8LUT. Rounding: the row's factor to float32 and then to Q31, the product twice."""
    out = np.empty(x.shape, data.dtype)
    rows = as_rows(x)
    sums = np.empty(len(rows), np.int32)
    _sum_exps(rows, data.exps, sums)
    factors = np.float32(1) / (sums.astype(np.float32) * data.scale)
    known = {real: quantize_multiplier(real) for real in set(factors.tolist())}
    pairs = np.array([known[real] for real in factors.tolist()], np.int64).reshape(-1, 2)
    _scale_rows_optimized(rows, data.exps, pairs, int(data.zero_point), *type_range(data.dtype), as_rows(out))
    return out


@compiled
def _largest(row: Array) -> Int:
    """Eval guarantees: a row has at least one element."""
    largest = np.int64(row[0])
    for c in range(1, row.size):
        largest = max(largest, np.int64(row[c]))
    return largest


@in_pieces(2, x="r", sums="r")
@compiled
def _sum_exps(x: Array, exps: Array, sums: Array) -> None:
    """Prepare guarantees: codes have 8 bits and `exps` 256 entries. Eval guarantees: no row is empty; one sum a row."""
    for r in range(x.shape[0]):
        largest, total = _largest(x[r]), np.int64(0)
        for c in range(x.shape[1]):
            total += np.int64(exps[largest - np.int64(x[r, c])])
        sums[r] = total


@in_pieces(4, x="r", factors="r", out="r")
@compiled
def _scale_rows_optimized(
    x: Array, exps: Array, factors: Array, zero_point: Int, low: Int, high: Int, out: Array
) -> None:
    """Prepare guarantees: codes have 8 bits and `exps` 256 entries. Eval guarantees: no row is empty; `factors` is
    (rows, 2).
    """
    for r in range(x.shape[0]):
        largest, mantissa, shift = _largest(x[r]), factors[r, 0], factors[r, 1]
        for c in range(x.shape[1]):
            scaled = multiply_double_rounding(np.int64(exps[largest - np.int64(x[r, c])]), mantissa, shift)
            out[r, c] = clamp(scaled + zero_point, low, high)


def prepare_half_away(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like x86-64's kernel; the result is rounded half away from zero."""
    prepared = prepare_table(node, arithmetic)
    data = replace(prepared.data, zero_point=node.outputs[0].zero_point, round=nearest_half_away)
    return replace(prepared, data=data)


@dataclass(frozen=True, slots=True, eq=False)
class LogData:
    """Constants of the quantized forms."""

    exps: Array  # by how far a code lies below its row's largest, float32
    input_scale: np.float32
    output_scale: np.float32
    zero_point: ZeroPoint  # LSB of output


def prepare_log(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with a beta of 1; scales stay float32."""
    x, y = check_quantized(node)
    data = LogData(exps_below(x.scale, np.float32(1)), x.scale, y.scale, y.zero_point)
    return Prepared((x.shape,), data, eval_log)


def eval_log(data: LogData, x: Array) -> Array:
    """Source: LogSoftmax. Rounding: float32 throughout, then half to even. Overflow: none."""
    rows = as_rows(x).astype(np.int32)
    if not rows.size:
        return np.empty(x.shape, x.dtype)
    largest = rows.max(axis=1, keepdims=True)
    log_sum = logf(sum_rows(data.exps[largest - rows]))
    subtracted = (data.input_scale * largest.astype(np.float32) + log_sum) / data.output_scale
    real = data.input_scale / data.output_scale * rows.astype(np.float32) - subtracted
    codes = floats_to_int32(np.rint(real)) + np.int32(data.zero_point)
    return np.asarray(np.clip(codes, *type_range(x.dtype)).astype(x.dtype)).reshape(x.shape)


#: How far below its row's largest a code may lie.
FARTHEST = 127


@dataclass(frozen=True, slots=True, eq=False)
class BesideData:
    """Constants of an operator, and its name in refusals."""

    op: str
    later: LogData


def prepare_beside(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like later releases, with a check of distances."""
    prepared = prepare_log(node, arithmetic)
    return Prepared(prepared.shapes, BesideData(node.op, prepared.data), eval_beside)


def eval_beside(data: BesideData, x: Array) -> Array:
    """Refuse distances that are looked up beside the table; else evaluate like later releases."""
    rows = as_rows(x).astype(np.int32)
    if rows.size and np.ptp(rows, axis=1).max() > FARTHEST:
        raise UndefinedResultError(data.op, f"codes more than {FARTHEST} below their row's largest are read elsewhere")
    return eval_log(data.later, x)


_EIGHT_BITS = ("uint8", "int8")


def prepare_log_by_eigen(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    prepared = prepare_float_log_softmax(node, arithmetic)
    return prepared if 0 in node.input(0).shape else replace(prepared, eval=eval_log_by_eigen)


def eval_log_by_eigen(_: None, x: Array) -> Array:
    """Rounding: float32 throughout. The C library makes a row's last exps, as many as are left over, and logarithms."""
    rows = as_rows(x)
    centred = rows - rows.max(axis=1, keepdims=True)
    sums = [eigen.row_sums(eigen_activations.exp(row)[None])[0] for row in centred]
    return np.asarray(centred - logf(np.array(sums, np.float32))[:, None]).reshape(x.shape)


_LOG_FLOAT = Kernel("LOG_SOFTMAX", "float32 -> float32", prepare_log_by_eigen, (1, 2), exactness=SAME_LIBM)

_OPTIMIZED = (
    *valid(opt("litert-1.0", cpu="x86-64"), _LOG_FLOAT),
    *valid(
        opt(),
        *ROWS,
        *_FLOAT,
        *(Kernel("LOG_SOFTMAX", f"{t} -> {t}", prepare_log, (1, 2), exactness=SAME_LIBM) for t in _EIGHT_BITS),
        *unclaimed_floats(LOG_SOFTMAX_ROWS),
    ),
    *valid(ref(until="tf-2.5"), *ROWS, *_FLOAT),
    *valid(
        opt("litert-1.0", cpu="arm64"),
        *(Kernel("SOFTMAX", f"{t} -> {t}", prepare_integer_table, (1, 3), exactness=SAME_LIBM) for t in _EIGHT_BITS),
    ),
    *valid(
        opt(cpu="arm64"),
        *(Kernel("SOFTMAX", f"{t} -> {t}|int16", prepare_half_away, (1, 3), exactness=SAME_LIBM) for t in _EIGHT_BITS),
    ),
    *valid(opt("tf-2.5", "tf-2.5"), Kernel("LOG_SOFTMAX", "int8 -> int8", prepare_beside, (1, 2), exactness=SAME_LIBM)),
    *valid(opt(until="tf-2.3"), *(row for row in LOG_SOFTMAX_ROWS if row.signature.makes(TensorType.INT8))),
)


def takes(node: Node) -> bool:
    """Return whether beta is 1 and the operand is not empty; no shape need be recorded."""
    x = node.input(0)
    return float(node.options["beta"]) == 1.0 and has_shape(x) and len(x.shape) > 0


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the number of lanes."""
    return Prepared((node.input(0).shape,), arithmetic.xnnpack_lanes, softmax)


_XNNPACK = valid(
    xnnpack("litert-2.1", cpu="x86-64"), delegate(Kernel("SOFTMAX", "float32 -> float32", prepare, (1, 3)), takes)
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_OPTIMIZED, *_XNNPACK)
