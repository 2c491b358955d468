"""LOG_SOFTMAX of 8-bit codes: a float32 table of exps, summed in order, one logarithm, one product an element.

Operands, options and refusals: tflq/kernels/softmax/log_softmax.py.
Exactness: exact on the same libm (expf, logf); the codes hardly ever feel it.
Source: LiteRT 2.3 optimized_ops.h PopulateSoftmaxLookupTable, LogSoftmax (quantized).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.kernels.exactness import SAME_LIBM
from tflq.kernels.families.rows import as_rows, sum_rows
from tflq.kernels.families.unclaimed import unclaimed_floats
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.softmax import log_softmax
from tflq.kernels.softmax.log_softmax import check_quantized
from tflq.kernels.softmax.optimized_softmax import exps_below
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import ZeroPoint
from tflq.numerics.libm import logf
from tflq.numerics.rounding import floats_to_int32
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    exps: Array  # by how far a code lies below its row's largest, float32
    input_scale: np.float32
    output_scale: np.float32
    zero_point: ZeroPoint  # LSB of output


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """beta is 1. Scales stay float32."""
    x, y = check_quantized(node)
    data = OpData(exps_below(x.scale, np.float32(1)), x.scale, y.scale, y.zero_point)
    return Prepared((x.shape,), data, eval_quantized)


def eval_quantized(data: OpData, x: Array) -> Array:
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


KERNELS = (
    *valid(
        opt(),
        *(
            Kernel("LOG_SOFTMAX", f"{t} -> {t}", prepare_quantized, (1, 2), exactness=SAME_LIBM)
            for t in ("uint8", "int8")
        ),
    ),
    *valid(opt(), *unclaimed_floats(log_softmax.KERNELS)),
)
