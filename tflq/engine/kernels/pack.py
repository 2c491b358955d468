"""PACK: stack tensors along a new dimension.

| operand | shape             | types                                              | quantization |
|---------|-------------------|----------------------------------------------------|--------------|
| x...    | all equal         | float32, uint8, int8, int16, int32, uint32, int64  | as y         |
| y       | x's plus the axis | as x                                               | per tensor   |

Options: values_count (the number of inputs), axis (negative: from the back of the output).
Source: LiteRT 2.3, pack.cc Prepare.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.engine.kernels.filling import Call, filling, in_turn
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import axis_within, require_same_quantization, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require inputs that agree in shape, type and quantization."""
    operands = [node.input(position) for position in range(len(node.inputs))]
    node.check(bool(operands), "number of inputs", expected="at least 1", got=0)
    count = int(node.options["values_count"])
    node.check(count == len(operands), "values_count", expected=len(operands), got=count)
    first, y = operands[0], node.outputs[0]
    require_same_type(node, first, *operands, y)
    require_same_quantization(node, y, *operands)
    for x in operands:
        node.check(x.shape == first.shape, "shape", x, expected=list(first.shape), got=list(x.shape))
    axis = axis_within(node, int(node.options["axis"]), len(first.shape) + 1)
    shape = (*first.shape[:axis], count, *first.shape[axis:])
    return Prepared((shape,), axis, eval_pack)


@filling(lambda axis, *inputs: ((*inputs[0].shape[:axis], len(inputs), *inputs[0].shape[axis:]), inputs[0].dtype))
def eval_pack(axis: int, out: Array, *inputs: Array) -> Call:
    """Source: reference_ops::Pack."""
    places = np.moveaxis(out, axis, 0)
    return in_turn([partial(np.copyto, places[i : i + 1], x) for i, x in enumerate(inputs)])


_X = "float32|uint8|int8|int16|int32|uint32|int64"

KERNELS = (Kernel("PACK", f"{_X}* -> {_X}", prepare, (1, 5)),)
