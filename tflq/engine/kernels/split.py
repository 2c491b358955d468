"""SPLIT: cut into equal parts along one dimension.

| operand | shape                  | types                                    | quantization |
|---------|------------------------|------------------------------------------|--------------|
| axis    | one element            | int32                                    |              |
| x       | any                    | float32, uint8, int8, int16, int32, int64| passed by    |
| y...    | x's, the axis divided  | as x                                     | passed by    |

Options: num_splits, which must be the number of outputs and divide the axis.
Source: LiteRT 2.3, split.cc ResizeOutputTensors.
"""

from __future__ import annotations

from tflq.engine.kernels.families.splitting import prepare_split
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import axis_within, integers, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require equal sizes for all outputs."""
    x, count = node.input(1), int(node.options["num_splits"])
    require_same_type(node, x, *node.outputs)
    node.check(count == len(node.outputs), "num_splits", expected=len(node.outputs), got=count)
    node.check(count != 0, "num_splits", expected="not 0", got=count)
    values = integers(node, 0)
    node.check(bool(values), "number of elements", node.input(0), expected=1, got=0)
    axis = axis_within(node, values[0], len(x.shape))
    node.check(x.shape[axis] % count == 0, f"dimension {axis}", x, expected=f"a multiple of {count}", got=x.shape[axis])
    return prepare_split(x.shape, axis, (x.shape[axis] // count,) * count, position=1)


_X = "float32|uint8|int8|int16|int32|int64"

KERNELS = (Kernel("SPLIT", f"int32 {_X} -> {_X}*", prepare, (1, 5), shape_operands=(0,)),)
