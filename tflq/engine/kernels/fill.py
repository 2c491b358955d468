"""FILL: a tensor of one value.

| operand | shape  | types                          | quantization                    |
|---------|--------|--------------------------------|---------------------------------|
| dims    | (n)    | int32, int64                   |                                 |
| value   | scalar | every 8 to 64 bit type, string | per tensor; int16: zero point 0 |
| y       | dims   | as value                       | as value                        |

Source: LiteRT 2.3, fill.cc Prepare.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.element_types import INDEX, SIZED
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import (
    integers,
    require_rank,
    require_same_quantization,
    require_same_type,
    require_size,
    require_zero_point_zero,
)
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import TensorType
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the dims as the output's shape."""
    dims, value, y = node.input(0), node.input(1), node.outputs[0]
    require_rank(node, dims, 1)
    require_rank(node, value, 0)
    require_same_type(node, value, y)
    require_same_quantization(node, value, y)
    if value.type == TensorType.INT16:
        require_zero_point_zero(node, value)
    shape = integers(node, 0)
    require_size(node, dims, shape)
    return Prepared((shape,), shape, eval_fill)


def eval_fill(shape: Shape, dims: Array, value: Array) -> Array:
    """Source: reference_ops::Fill."""
    return np.full(shape, value, value.dtype)


_X = f"{SIZED}|string"

KERNELS = (Kernel("FILL", f"{INDEX} {_X} -> {_X}", prepare, (1, 5), shape_operands=(0,)),)
