"""SOFTMAX of 8-bit codes: a float32 table of exps, summed in order, one reciprocal, one product an element.

Operands, options and refusals: tflq/engine/kernels/softmax/reference.py.
Exactness: exact on the same libm (expf), which hardly ever changes a code.
Source: LiteRT 2.3 optimized_ops.h PopulateSoftmaxLookupTable, Softmax, QuantizeSoftmaxOutput.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.rows import as_rows
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.softmax.operands import check_8bit
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.libm import expf
from tflq.engine.numerics.rounding import floats_to_int32, nearest_half_away
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Elements that are worked on together, and bytes that each takes: floats, their integers, and what rounds them.
_BLOCK, _ELEMENT_BYTES = 1 << 16, 40


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
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
    data = OpData(
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


def eval_table(data: OpData, x: Array) -> Array:
    """Source: Softmax. Rounding: float32 throughout, then `round`. Overflow: none."""
    out = np.empty(x.shape, data.dtype)
    rows, codes = as_rows(x), as_rows(out)
    step = max(1, _BLOCK // max(1, rows.shape[-1]))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        real = np.empty(rows[block].shape, np.float32)
        _scale_rows(rows[block], data.exps, data.scale, real)
        whole = floats_to_int32(data.round(real)) + np.int32(data.zero_point)
        codes[block] = np.clip(whole, *type_range(data.dtype))
    return out


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
