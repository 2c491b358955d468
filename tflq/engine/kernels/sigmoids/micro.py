"""LOGISTIC and TANH of TensorFlow Lite Micro on int8: fixed-point functions of 32 bits, not a table of floats.

| operand | shape | types | quantization                                                              |
|---------|-------|-------|---------------------------------------------------------------------------|
| x       | any   | int8  | per tensor                                                                |
| y       | as x  | int8  | LOGISTIC: taken to be 1/256, zero point -128; TANH: taken to be 1/128, 0  |

Source: tflite-micro (October 2026), logistic_common.cc CalculateArithmeticOpDataLogistic, tanh.cc
CalculateArithmeticOpData; reference_integer_ops::Logistic, Tanh (int8).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.engine.kernels.families.unary import same_type
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.multiplier import quantize_multiplier
from tflq.engine.numerics.scaling import calculate_input_radius
from tflq.engine.numerics.sigmoid_int8 import INPUT_INTEGER_BITS, logistic_int8, tanh_int8
from tflq.engine.numerics.tables import look_up_8bit
from tflq.typing import Array


def prepare_with(function: Callable[..., Array], zero_point: int | None) -> Callable[[Node, Arithmetic], Prepared]:
    """Return a prepare that tabulates `function` of all codes; the output must have `zero_point`, if given."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = same_type(node)
        if zero_point is not None:
            node.check(y.zero_point == zero_point, "zero point", y, expected=zero_point, got=y.zero_point)
        real = np.float64(x.scale) * np.float64(1 << (31 - INPUT_INTEGER_BITS))
        radius = calculate_input_radius(INPUT_INTEGER_BITS, quantize_multiplier(float(real))[1])
        codes = np.arange(256, dtype=np.uint8).view(np.int8)
        centred = codes.astype(np.int32) - np.int32(x.zero_point)
        return Prepared((x.shape,), function(centred, radius, arithmetic.requantize(real)), evaluate)

    return prepare


def evaluate(table: Array, x: Array) -> Array:
    """Source: Logistic, Tanh (int8). Rounding: when the table was computed."""
    return look_up_8bit(table, x)


KERNELS = valid(
    micro(),
    Kernel("LOGISTIC", "int8 -> int8", prepare_with(logistic_int8, -128), (1, 3)),
    Kernel("TANH", "int8 -> int8", prepare_with(tanh_int8, None), (1, 3)),
)
