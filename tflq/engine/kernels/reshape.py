"""RESHAPE: the same elements in another shape.

| operand | shape       | types          | quantization  |
|---------|-------------|----------------|---------------|
| x       | any         | any            | passed by     |
| shape   | (rank of y) | int32, or none |               |
| y       | shape       | as x           | passed by     |

The shape operand counts if it is an int32 vector, else the option new_shape (a lone 0 there means a scalar, as old
files write it). One dimension may be -1: what is left over.
Source: LiteRT 2.3, reshape.cc GetOutputShape; internal/reshape_utils.h ResolveOutputShape.
"""

from __future__ import annotations

from math import prod

from tflq.engine.kernels.families.movement import prepare_view
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import integers, integers_option, require_same_type, require_size
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import TensorType


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the output's shape with its -1."""
    x, y = node.input(0), node.outputs[0]
    require_same_type(node, x, y)
    shape = resolve(node, x.shape, requested_shape(node))
    node.check(prod(shape) == prod(x.shape), "number of elements", y, expected=prod(x.shape), got=prod(shape))
    return prepare_view(shape)


def requested_shape(node: Node) -> Shape:
    """Return the shape as the file asks for it."""
    operand = node.optional(1)
    if operand is not None and operand.type == TensorType.INT32 and len(operand.shape) == 1:
        return integers(node, 1)
    shape = integers_option(node, "new_shape")
    return () if shape == (0,) else shape


def resolve(node: Node, shape: Shape, requested: Shape) -> Shape:
    """Return `requested` with its -1, if any, computed from the elements of `shape`.

    Zero dimensions on both sides are left out of the division, as long as both sides have one.
    """
    if -1 not in requested:
        require_size(node, node.outputs[0], requested)
        return requested
    node.check(requested.count(-1) == 1, "more than one dimension is -1", got=list(requested))
    stretched = requested.index(-1)
    rest = requested[:stretched] + requested[stretched + 1 :]
    require_size(node, node.outputs[0], rest)
    if prod(shape) == 0 and prod(rest) != 0:
        left = 0
    else:
        left = prod(d for d in shape if d) // prod(d for d in rest if d)
    return (*requested[:stretched], left, *requested[stretched + 1 :])


KERNELS = (Kernel("RESHAPE", "any any? -> any", prepare, (1, 1), shape_operands=(1,)),)
