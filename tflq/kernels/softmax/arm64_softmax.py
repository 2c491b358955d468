"""SOFTMAX of 8-bit codes to 8-bit codes of the same type: a 16-bit table of exps, an integer sum, one multiplier a row.

Operands, options and refusals: tflq/kernels/softmax/softmax.py.
Exactness: exact on the same libm (expf); the table hardly ever feels it.
Source: LiteRT 2.3 optimized_ops.h PopulateSoftmaxUInt8LookupTable, SoftmaxInt8LUT with TFLITE_SOFTMAX_USE_UINT16_LUT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.ir import CARRIER
from tflq.jit.compiled import Int, compiled
from tflq.jit.pieces import in_pieces
from tflq.kernels.exactness import SAME_LIBM
from tflq.kernels.families.rows import as_rows
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.softmax.softmax import check_8bit
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import ZeroPoint
from tflq.numerics.libm import expf
from tflq.numerics.multiplier import multiply_double_rounding, quantize_multiplier
from tflq.numerics.rounding import clamp
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    exps: Array  # by how far a code lies below its row's largest, times 65535, int32
    scale: np.float32  # of the output
    zero_point: ZeroPoint  # LSB of output
    dtype: np.dtype[Any]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """scale * beta is a float32 product; exps are scaled and rounded half up in float64."""
    x, y = check_8bit(node)
    dtype = CARRIER[y.type]
    steps = x.scale * np.float32(node.options["beta"]) * -np.arange(256, dtype=np.float32)
    exps = np.trunc((expf(steps) * np.float32(65535)).astype(np.float64) + 0.5).clip(None, 65535).astype(np.int32)
    return Prepared((x.shape,), OpData(exps, y.scale, y.zero_point, dtype), evaluate)


def evaluate(data: OpData, x: Array) -> Array:
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


KERNELS = valid(
    opt("litert-1.0", cpu="arm64"),
    *(Kernel("SOFTMAX", f"{t} -> {t}", prepare, (1, 3), exactness=SAME_LIBM) for t in ("uint8", "int8")),
)
