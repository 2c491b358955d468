"""SUM: y = sum of x over the axes.

| operand | shape                | types                 | quantization |
|---------|----------------------|-----------------------|--------------|
| x       | any                  | float32, int32, int64 | none         |
|         |                      | uint8, int8           | per tensor   |
| axes    | any                  | int32                 |              |
| y       | x without, or with 1 | as x                  | per tensor   |

Options: keep_dims.
The source reads and writes every quantized type as uint8. For int8 that means codes modulo 256 against the signed zero
points; for int16 it leaves half of the output unwritten, so that this is refused.
Source: LiteRT 2.3, reduce.cc PrepareMeanOrSum, EvalSum, QuantizedMeanOrSum; reference/reduce.h QuantizedMeanOrSum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tflq.errors import UndefinedResultError
from tflq.kernels.families.reduction import AXES, Reduced, fold_sum, kernels, reduced_axes, sum_int32
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import ZeroPoint
from tflq.numerics.stages import OutputPipeline, type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    reduced: Reduced
    zeros: ZeroPoint  # zero point of the input times the number of summands, LSB of input
    read_as: np.dtype[Any]  # the type as which codes are read and written
    pipeline: OutputPipeline


def prepare_quantized(node: Node, arithmetic: Arithmetic, read_as: DTypeLike = np.uint8) -> Prepared:
    """The real multiplier is a float64 quotient. Codes of 8 bits are read and written as `read_as`."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    stage = arithmetic.requantize(np.float64(x.scale) / np.float64(y.scale))
    dtype = np.dtype(read_as)
    pipeline = OutputPipeline(stage, y.zero_point, type_range(dtype), dtype)
    data = OpData(reduced, ZeroPoint(x.zero_point * reduced.count), dtype, pipeline)
    return Prepared((reduced.shape,), data, eval_quantized)


def eval_quantized(data: OpData, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: once, by the stage. Overflow: the sum wraps int32."""
    rows = data.reduced.rows(x).view(data.read_as)
    if not rows.size:
        return np.zeros(data.reduced.shape, x.dtype)
    sums = sum_int32(rows) - np.int64(data.zeros).astype(np.int32)
    return data.pipeline(sums).view(x.dtype).reshape(data.reduced.shape)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Nothing that the source writes could be relied on."""
    raise UndefinedResultError("EvalSum", "int16 is written as uint8, half of the output stays unwritten")


def _start(dtype: np.dtype[np.generic]) -> int:
    return 0


KERNELS = (
    *kernels("SUM", fold_sum, _start, ("float32", "int32", "int64"), (1, 2)),
    *(Kernel("SUM", f"{t} int32 -> {t}", prepare_quantized, (1, 2), AXES) for t in ("uint8", "int8")),
    Kernel("SUM", "int16 int32 -> int16", prepare_int16, (1, 2), AXES),
)
