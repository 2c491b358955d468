"""MUL of TensorFlow Lite Micro: 16 bits are always quantized.

| operand | shape             | types       | quantization                    |
|---------|-------------------|-------------|---------------------------------|
| a, b    | any, broadcasting | int8, int16 | per tensor; int16: zero point 0 |
| y       | broadcast         | as a        | as a                            |

An output of uint8 for int16 inputs gets no constants when it is prepared: every code is 0.
Source: tflite-micro (October 2026), mul_common.cc CalculateOpDataMul, EvalMulQuantizedReference.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.mul import reference as mul
from tflq.engine.kernels.validity import micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require zero points 0."""
    for operand in both(node):
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    return mul.prepare_quantized(node, arithmetic)


def prepare_uint8_output(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the shape alone: multiplier and limits stay 0."""
    a, b, _ = both(node)
    shape = broadcast_shape(node, a, b)
    return Prepared((shape,), shape, eval_uint8_output)


def eval_uint8_output(shape: Shape, a: Array, b: Array) -> Array:
    """Source: EvalMulQuantizedReference, without the constants that it lacks. Overflow: it also writes past the end."""
    return np.zeros(shape, np.uint8)


KERNELS = valid(
    micro(),
    Kernel("MUL", "int8 int8 -> int8", mul.prepare_quantized, (1, 7)),
    Kernel("MUL", "int16 int16 -> int16", prepare_int16, (1, 7)),
    Kernel("MUL", "int16 int16 -> uint8", prepare_uint8_output, (1, 7)),
)
