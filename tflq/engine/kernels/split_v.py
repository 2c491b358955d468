"""SPLIT_V: cut into parts of given sizes along one dimension.

| operand | shape              | types                                     | quantization |
|---------|--------------------|-------------------------------------------|--------------|
| x       | any                | float32, uint8, int8, int16, int32, int64 | passed by    |
| sizes   | (number of y)      | int32, int64                              |              |
| axis    | one element        | int32                                     |              |
| y...    | x's, axis by size  | as x                                      | passed by    |

Options: num_splits, which must be the number of outputs. One size may be -1: what the others leave over.
Source: LiteRT 2.3, split_v.cc ResizeOutputTensors.
"""

from __future__ import annotations

from tflq.engine.kernels.families.element_types import INDEX
from tflq.engine.kernels.families.splitting import prepare_split
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import axis_within, integers, require_same_type, require_size
from tflq.engine.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require sizes that add up to the dimension."""
    x, operand, count = node.input(0), node.input(1), len(node.outputs)
    require_same_type(node, x, *node.outputs)
    node.check(int(node.options["num_splits"]) == count, "num_splits", expected=count, got=node.options["num_splits"])
    node.check(operand.shape == (count,), "shape of the sizes", operand, expected=[count], got=list(operand.shape))
    values = integers(node, 2)
    node.check(bool(values), "number of elements", node.input(2), expected=1, got=0)
    axis = axis_within(node, values[0], len(x.shape))
    sizes = integers(node, 1)
    node.check(sizes.count(-1) <= 1, "more than one size is -1", operand, got=list(sizes))
    rest = x.shape[axis] - sum(size for size in sizes if size != -1)
    sizes = tuple(rest if size == -1 else size for size in sizes)
    require_size(node, operand, sizes)
    node.check(sum(sizes) == x.shape[axis], "sum of the sizes", operand, expected=x.shape[axis], got=sum(sizes))
    return prepare_split(x.shape, axis, sizes, position=0)


_X = "float32|uint8|int8|int16|int32|int64"

KERNELS = (Kernel("SPLIT_V", f"{_X} {INDEX} int32 -> {_X}*", prepare, (1, 3), shape_operands=(1, 2)),)
