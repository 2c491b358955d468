"""UNPACK: the slices of a tensor along one dimension, which disappears.

| operand | shape                | types                                          | quantization |
|---------|----------------------|------------------------------------------------|--------------|
| x       | at least one element | float32, float16, bfloat16, uint8, int8, int16,| per tensor   |
|         |                      | int32, bool                                    |              |
| y...    | x's without the axis | as x                                           | as x         |

Options: num (the number of outputs and the size of the axis), axis (negative: from the back).
Source: LiteRT 2.3, unpack.cc Prepare.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tflq.engine.kernels.families.movement import Pieces, contiguous, eval_view
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import axis_within, require_same_quantization, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one output for every position of the axis."""
    x, count = node.input(0), int(node.options["num"])
    node.check(count == len(node.outputs), "num", expected=len(node.outputs), got=count)
    node.check(prod(x.shape) > 0, "number of elements", x, expected="more than 0", got=0)
    require_same_type(node, x, *node.outputs)
    require_same_quantization(node, x, *node.outputs)
    axis = axis_within(node, int(node.options["axis"]), len(x.shape))
    node.check(x.shape[axis] == count, f"dimension {axis}", x, expected=count, got=x.shape[axis])
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    if prod(x.shape[:axis]) == 1:
        return Prepared((shape,) * count, Pieces((shape,) * count), eval_view)
    return Prepared((shape,) * count, axis, eval_unpack)


def eval_unpack(axis: int, x: Array) -> tuple[Array, ...]:
    """Source: reference_ops::Unpack."""
    return tuple(contiguous(part) for part in np.moveaxis(x, axis, 0)) if x.ndim > 1 else tuple(map(np.asarray, x))


_X = "float32|float16|bfloat16|uint8|int8|int16|int32|bool"

KERNELS = (Kernel("UNPACK", f"{_X} -> {_X}*", prepare, (1, 6)),)
