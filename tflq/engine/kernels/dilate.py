"""DILATE: elements moved apart, a value between them.

| operand   | shape                  | types                     |
|-----------|------------------------|---------------------------|
| x         | at least one dimension | all of 8, 16, 32, 64 bits |
| dilations | one per dimension      | int32                     |
| value     | one element            | as x                      |
| y         | (x - 1) * dilation + 1 | as x                      |

Source: LiteRT 2.3, dilate.cc.
"""

from __future__ import annotations

from tflq.engine.kernels.families.element_types import SIZED
from tflq.engine.kernels.geometry.interior_padding import Spread, move_apart, spread
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import integers, require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry alone."""
    x, dilations, value = (node.input(position) for position in range(3))
    require_same_type(node, x, value, node.outputs[0])
    require_rank(node, dilations, 1)
    steps, rank = integers(node, 1), len(x.shape)
    node.check(rank > 0, "number of dimensions", x, expected="at least 1", got=rank)
    node.check(len(steps) == rank, "number of elements", dilations, expected=rank, got=len(steps))
    node.check(min(steps) >= 1, "dilations", dilations, expected="at least 1", got=list(steps))
    if 0 in x.shape:
        raise UndefinedResultError(node.op, "the source copies an element out of an empty input")
    data = spread(x.shape, (0,) * rank, (0,) * rank, steps)
    return Prepared((data.shape,), data, evaluate)


def evaluate(data: Spread, x: Array, _: Array, value: Array) -> Array:
    """Source: DilateImpl. Nothing is rounded."""
    return move_apart(data, x, value.reshape(-1)[0])


KERNELS = (Kernel("DILATE", f"{SIZED} int32 {SIZED} -> {SIZED}", prepare, (1, 1), shape_operands=(1,)),)
