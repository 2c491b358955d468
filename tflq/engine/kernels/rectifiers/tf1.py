"""RELU6 and RELU_N1_TO_1 of r1.15: codes are held inside the limits, and not rescaled.

| operand | shape | types       | quantization                                        |
|---------|-------|-------------|-----------------------------------------------------|
| x       | any   | uint8, int8 | not looked at                                       |
| y       | as x  | as x        | per tensor: the limits are codes of this            |

Source: TensorFlow r1.15 lite/kernels/activations.cc QuantizedReluX; reference_ops.h ReluX.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.activation import quantized_limit
from tflq.engine.kernels.families.unary import prepare_unary, same_type
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp
from tflq.engine.numerics.stages import type_range
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class OpData:
    """Limits, LSB of output."""

    clamp: Clamp


def prepare_between(low: float, high: float) -> Callable[[Node, Arithmetic], Prepared]:
    """Return a prepare for a rectifier that clips reals to [low, high]."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = same_type(node)
        node.check(bool(y.scale > 0), "needs a positive per-tensor scale", y, got=y.scale)
        dtype = np.dtype(x.type.label)
        smallest, largest = type_range(dtype)
        floor, ceiling = (quantized_limit(limit, y.scale, y.zero_point) for limit in (low, high))
        return prepare_unary(node, OpData(Clamp(max(smallest, floor), min(largest, ceiling))), evaluate, dtype)

    return prepare


def evaluate(data: OpData, x: Array) -> Array:
    """Source: ReluX, which asks for the upper limit first. Rounding, overflow: none."""
    codes, (low, high) = x.astype(np.int32), data.clamp
    return np.where(codes > high, high, np.maximum(codes, low)).astype(x.dtype)


KERNELS = valid(
    tf1(),
    *(Kernel("RELU6", f"{t} -> {t}", prepare_between(0.0, 6.0), (1, 2)) for t in ("uint8", "int8")),
    *(Kernel("RELU_N1_TO_1", f"{t} -> {t}", prepare_between(-1.0, 1.0), (1, 1)) for t in ("uint8", "int8")),
)
