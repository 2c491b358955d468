"""SQUARED_DIFFERENCE: y = (a - b) ** 2.

| operand | shape             | types                | quantization                             |
|---------|-------------------|----------------------|------------------------------------------|
| a, b    | any, broadcasting | float32, int32, int8 | per tensor, zero points within the type  |
| y       | broadcast         | as a                 | per tensor, zero point within the type   |

Source: LiteRT 2.3, squared_difference.cc Prepare, SquaredDifference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.binary import both, prepare_plain
from tflq.engine.kernels.families.scaled_sum import scale_codes, smaller_than_one
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.typing import Array

LEFT_SHIFT = 7


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized form."""

    first: Array  # by code of the first input (as unsigned): int32 on the common scale
    second: Array
    pipeline: OutputPipeline  # common scale squared -> codes


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use twice the larger input scale (float32), 2**7 times finer, as the common scale."""
    a, b, y = both(node)
    limits = type_range(np.int8)
    for operand in (a, b, y):
        node.check(limits.low <= operand.zero_point <= limits.high, "zero point", operand, got=operand.zero_point)
    twice = np.float64(np.float32(2) * max(a.scale, b.scale))
    output = smaller_than_one(twice * twice / np.float64(np.float32(1 << 2 * LEFT_SHIFT) * y.scale))
    data = OpData(
        first=scale_codes(a, arithmetic, np.float64(a.scale) / twice, LEFT_SHIFT),
        second=scale_codes(b, arithmetic, np.float64(b.scale) / twice, LEFT_SHIFT),
        pipeline=OutputPipeline(arithmetic.requantize(output), y.zero_point, limits, np.dtype(np.int8)),
    )
    return Prepared((broadcast_shape(node, a, b),), data, eval_quantized)


def eval_quantized(data: OpData, a: Array, b: Array) -> Array:
    """Source: SquaredDifference (int8). Rounding: each input's, then the square's. Overflow: none (below 2**30)."""
    difference = data.first[a.view(np.uint8)] - data.second[b.view(np.uint8)]
    return data.pipeline(difference * difference)


def squared_difference(a: Array, b: Array) -> Array:
    """Return (a - b) ** 2 in the operands' type: float32 rounds twice, int32 wraps."""
    difference = np.asarray(a - b)
    return np.asarray(difference * difference)


KERNELS = (
    *(
        Kernel("SQUARED_DIFFERENCE", f"{t} {t} -> {t}", prepare_plain(squared_difference), (1, 2))
        for t in ("float32", "int32")
    ),
    Kernel("SQUARED_DIFFERENCE", "int8 int8 -> int8", prepare_quantized, (1, 2)),
)
