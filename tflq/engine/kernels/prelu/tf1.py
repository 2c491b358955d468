"""PRELU of r1.15: y = x for x >= 0, alpha * x below; codes at the zero point or above are copied.

| operand | shape           | types | quantization |
|---------|-----------------|-------|--------------|
| x       | any             | uint8 | per tensor   |
| alpha   | broadcasts to x | uint8 | per tensor   |
| y       | as x            | uint8 | per tensor   |

The real multiplier scale(x) * scale(alpha) / scale(y) has to be below 1.
Source: TensorFlow r1.15 lite/kernels/activations.cc PreluPrepare; reference_ops.h BroadcastPrelu4DSlow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.scaled_sum import smaller_than_one
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.prelu.reference import check_shape
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of an operator."""

    input_zero_point: ZeroPoint  # LSB of input
    alpha_zero_point: ZeroPoint  # LSB of alpha
    output_zero_point: ZeroPoint  # LSB of output
    negative: OutputStage  # LSB of input times LSB of alpha -> LSB of output


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the real multiplier in float32, left to right, then widen it to float64."""
    x, alpha, y = node.input(0), node.input(1), node.outputs[0]
    check_shape(node)
    stage = arithmetic.requantize(smaller_than_one(np.float64(x.scale * alpha.scale / y.scale)))
    return Prepared((x.shape,), OpData(x.zero_point, alpha.zero_point, y.zero_point, stage), evaluate)


def evaluate(data: OpData, x: Array, alpha: Array) -> Array:
    """Source: BroadcastPrelu4DSlow. Rounding: below zero once, by the stage. Overflow: none."""
    centred = x.astype(np.int32) - np.int32(data.input_zero_point)
    slope = alpha.astype(np.int32) - np.int32(data.alpha_zero_point)
    scaled = data.negative(centred * slope) + np.int32(data.output_zero_point)
    return np.where(centred >= 0, x, np.clip(scaled, *type_range(np.uint8)).astype(np.uint8))


KERNELS = valid(tf1(), Kernel("PRELU", "uint8 uint8 -> uint8", prepare, (1, 1)))
