"""EXPAND_DIMS: insert one dimension of size 1.

| operand | shape       | types        | quantization                    |
|---------|-------------|--------------|---------------------------------|
| x       | any         | any          | per tensor; int16: zero point 0 |
| axis    | one element | int32, int64 |                                 |
| y       | x's plus 1  | as x         | as x                            |

Source: LiteRT 2.3, expand_dims.cc ExpandTensorDim.
"""

from __future__ import annotations

from tflq.engine.kernels.families.element_types import INDEX
from tflq.engine.kernels.families.movement import prepare_view
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import (
    axis_within,
    integer,
    require_same_quantization,
    require_same_type,
    require_zero_point_zero,
)
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import TensorType


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the axis, which counts in the output: rank + 1 positions."""
    x, y = node.input(0), node.outputs[0]
    require_same_type(node, x, y)
    require_same_quantization(node, x, y)
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x)
    axis = axis_within(node, integer(node, 1), len(x.shape) + 1)
    return prepare_view((*x.shape[:axis], 1, *x.shape[axis:]))


KERNELS = (Kernel("EXPAND_DIMS", f"any {INDEX} -> any", prepare, (1, 1), shape_operands=(1,)),)
