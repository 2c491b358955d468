"""SQUARED_DIFFERENCE of TensorFlow Lite Micro, which takes 16 bits too.

| operand | shape             | types | quantization             |
|---------|-------------------|-------|--------------------------|
| a, b    | any, broadcasting | int16 | per tensor, zero point 0 |
| y       | broadcast         | int16 | per tensor, zero point 0 |

Source: tflite-micro (October 2026), squared_difference.cc SquaredDifferencePrepare, PrepareQuantized.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.scaled_sum import scale_codes, smaller_than_one
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.squared_difference.reference import OpData
from tflq.engine.kernels.validity import micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.typing import Array


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use twice the larger input scale as the common scale, no finer: codes have 16 bits already."""
    a, b, y = both(node)
    for operand in (a, b, y):
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    twice = np.float64(np.float32(2) * max(a.scale, b.scale))
    output = smaller_than_one(twice * twice / np.float64(y.scale))
    dtype = np.dtype(np.int16)
    data = OpData(
        first=scale_codes(a, arithmetic, np.float64(a.scale) / twice, 0),
        second=scale_codes(b, arithmetic, np.float64(b.scale) / twice, 0),
        pipeline=OutputPipeline(arithmetic.requantize(output), ZeroPoint(0), type_range(dtype), dtype),
    )
    return Prepared((broadcast_shape(node, a, b),), data, eval_int16)


def eval_int16(data: OpData, a: Array, b: Array) -> Array:
    """Source: SquaredDifference (int16). Rounding: each input's, then the square's. Overflow: none (at most 2**30)."""
    difference = data.first[a.view(np.uint16)] - data.second[b.view(np.uint16)]
    return data.pipeline(difference * difference)


KERNELS = valid(micro(), Kernel("SQUARED_DIFFERENCE", "int16 int16 -> int16", prepare_int16, (1, 2)))
