"""SOFTMAX: y = exp(beta * x) / sum of exp(beta * x), over the last axis. LOG_SOFTMAX: log_softmax.py.

| operand | shape          | types                                | quantization                                  |
|---------|----------------|--------------------------------------|-----------------------------------------------|
| x       | rank 1 or more | float32, float16, uint8, int8, int16 | per tensor; int16: zero point 0               |
| y       | as x           | as x; for uint8, int8 also int16     | int8: 1/256, -128; int16 of int16: 1/32768, 0 |

Options: beta.
8 bits: integers throughout; if the sum of exps reaches 512 the source aborts and this raises. int16: two tables.
Only LiteRT's full resolver registers version 4: its 8-bit codes go through float_table.py, floats are refused.
Source: LiteRT 2.3, activations.cc SoftmaxPrepare, SoftmaxEval; register.cc; reference/softmax.h Softmax, SoftmaxInt16,
SoftMaxCalculateExp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.rows import as_rows, fixed_point_exps, row_maxima, sum_rows
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.softmax import log_softmax
from tflq.engine.kernels.softmax.float_table import prepare_table
from tflq.engine.kernels.softmax.operands import check_8bit, check_output, operands
from tflq.engine.kernels.validity import ref
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.bits import count_leading_zeros
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.elementary import reciprocal
from tflq.engine.numerics.fixedpoint import doubling_high_mul
from tflq.engine.numerics.libm import expf
from tflq.engine.numerics.rounding import clamp, divide_by_pot_half_away, wrap_int32
from tflq.engine.numerics.scaling import calculate_input_radius, preprocess_softmax_scaling
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.engine.numerics.tables import look_up_16bit, table_16bit
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER
from tflq.typing import Array

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
    node.check(x.zero_point == 0, "zero point", x, expected=0, got=x.zero_point)
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


KERNELS = (
    *(Kernel("SOFTMAX", f"{t} -> {t}", prepare_float, (1, 3), exactness=SAME_LIBM) for t in ("float32", "float16")),
    *(Kernel("SOFTMAX", f"{t} -> {t}|int16", prepare_8bit, (1, 3)) for t in ("uint8", "int8")),
    Kernel("SOFTMAX", "int16 -> int16", prepare_int16, (1, 3)),
    *(Kernel("SOFTMAX", f"{t} -> {t}|int16", prepare_table, (4, 4), exactness=SAME_LIBM) for t in ("uint8", "int8")),
    Kernel("SOFTMAX", "int16 -> int16", prepare_int16, (4, 4)),
    *log_softmax.ROWS,
    *valid(ref(until="tf-2.5"), *log_softmax.LOWEST),
)
