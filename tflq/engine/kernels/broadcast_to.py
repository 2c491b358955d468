"""BROADCAST_TO: repeat dimensions of size 1 until a shape is filled.

| operand | shape                   | types                   | quantization |
|---------|-------------------------|-------------------------|--------------|
| x       | any                     | every 8 to 64 bit type  | passed by    |
| shape   | (n), n >= rank of x     | int32, int64            |              |
| y       | shape                   | as x                    | passed by    |

Source: LiteRT 2.3, broadcast_to.cc ResizeOutputTensor; reference/broadcast_to.h BroadcastTo.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.element_types import INDEX, SIZED
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import integers, require_rank, require_same_type, require_size
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require each dimension of the input, from the back, to be 1 or the one asked for."""
    x, operand = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, operand, 1)
    shape = integers(node, 1)
    require_size(node, operand, shape)
    tail = shape[len(shape) - len(x.shape) :]
    fits = len(x.shape) <= len(shape) and all(a in (1, b) for a, b in zip(x.shape, tail, strict=True))
    node.check(fits, "shape to broadcast", x, expected=list(shape), got=list(x.shape))
    return Prepared((shape,), shape, eval_broadcast)


def eval_broadcast(shape: Shape, x: Array, _: Array) -> Array:
    """Source: reference_ops::BroadcastTo."""
    return np.broadcast_to(x, shape).copy()


KERNELS = (Kernel("BROADCAST_TO", f"{SIZED} {INDEX} -> {SIZED}", prepare, (2, 4), shape_operands=(1,)),)
