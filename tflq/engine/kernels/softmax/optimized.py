"""SOFTMAX and LOG_SOFTMAX of the optimized resolver. Data sheets: kernels/softmax/reference.py, log_softmax.py.

SOFTMAX of 8-bit codes: float_table.py. On AArch64 it rounds half away for uint8, too, whose zero point counts; codes to
codes of the same type have a 16-bit table of exps, an integer sum and one multiplier a row. SOFTMAX of float32 is as
Eigen's arrays compute it: differences, a polynomial exp, sums by packets, one inverse a row. LOG_SOFTMAX of float32 on
x86-64 is alike, with a logarithm a row. The reference resolver up to 2.5 runs both forms of SOFTMAX.
LOG_SOFTMAX of 8-bit codes: a float32 table of exps, summed in order, one logarithm, one product an element. In 2.5,
codes far below their row's largest are looked up beside the table, where other data lie: refused. In 2.3, int8 runs the
reference kernel.
Exactness: exact on the same libm (expf, logf), which hardly ever changes a code.
Source: LiteRT 2.3 optimized_ops.h PopulateSoftmaxLookupTable, Softmax, SoftmaxImpl, QuantizeSoftmaxOutput,
PopulateSoftmaxUInt8LookupTable, SoftmaxInt8LUT with TFLITE_SOFTMAX_USE_UINT16_LUT, LogSoftmax. TensorFlow
2.3 activations.cc LogSoftmaxEval. TensorFlow 2.5.3's package for x86-64, seen from outside: two codes in a row, every
distance of 0 to 255.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.rows import as_rows, sum_rows
from tflq.engine.kernels.families.unclaimed import unclaimed_floats
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.softmax import float_table, log_softmax
from tflq.engine.kernels.softmax.float_table import exps_below
from tflq.engine.kernels.softmax.log_softmax import check_quantized
from tflq.engine.kernels.softmax.operands import check_8bit
from tflq.engine.kernels.softmax.reference import prepare_float
from tflq.engine.kernels.validity import opt, ref
from tflq.engine.numerics import eigen, eigen_activations
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.libm import expf, logf
from tflq.engine.numerics.multiplier import multiply_double_rounding, quantize_multiplier
from tflq.engine.numerics.rounding import clamp, floats_to_int32, nearest_half_away
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


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
    _scale_rows(rows, data.exps, pairs, int(data.zero_point), *type_range(data.dtype), as_rows(out))
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
def _scale_rows(x: Array, exps: Array, factors: Array, zero_point: Int, low: Int, high: Int, out: Array) -> None:
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
    prepared = float_table.prepare_table(node, arithmetic)
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
    prepared = log_softmax.prepare_float(node, arithmetic)
    return prepared if 0 in node.input(0).shape else replace(prepared, eval=eval_log_by_eigen)


def eval_log_by_eigen(_: None, x: Array) -> Array:
    """Rounding: float32 throughout. The C library makes a row's last exps, as many as are left over, and logarithms."""
    rows = as_rows(x)
    centred = rows - rows.max(axis=1, keepdims=True)
    sums = [eigen.row_sums(eigen_activations.exp(row)[None])[0] for row in centred]
    return np.asarray(centred - logf(np.array(sums, np.float32))[:, None]).reshape(x.shape)


_LOG_FLOAT = Kernel("LOG_SOFTMAX", "float32 -> float32", prepare_log_by_eigen, (1, 2), exactness=SAME_LIBM)

KERNELS = (
    *valid(opt("litert-1.0", cpu="x86-64"), _LOG_FLOAT),
    *valid(
        opt(),
        *float_table.ROWS,
        *_FLOAT,
        *(Kernel("LOG_SOFTMAX", f"{t} -> {t}", prepare_log, (1, 2), exactness=SAME_LIBM) for t in _EIGHT_BITS),
        *unclaimed_floats(log_softmax.ROWS),
    ),
    *valid(ref(until="tf-2.5"), *float_table.ROWS, *_FLOAT),
    *valid(
        opt("litert-1.0", cpu="arm64"),
        *(Kernel("SOFTMAX", f"{t} -> {t}", prepare_integer_table, (1, 3), exactness=SAME_LIBM) for t in _EIGHT_BITS),
    ),
    *valid(
        opt(cpu="arm64"),
        *(Kernel("SOFTMAX", f"{t} -> {t}|int16", prepare_half_away, (1, 3), exactness=SAME_LIBM) for t in _EIGHT_BITS),
    ),
    *valid(opt("tf-2.5", "tf-2.5"), Kernel("LOG_SOFTMAX", "int8 -> int8", prepare_beside, (1, 2), exactness=SAME_LIBM)),
    *valid(opt(until="tf-2.3"), *(row for row in log_softmax.ROWS if row.signature.makes(TensorType.INT8))),
)
