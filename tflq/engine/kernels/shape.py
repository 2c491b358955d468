"""SHAPE: the dimensions of a tensor.

| operand | shape       | types        |
|---------|-------------|--------------|
| x       | any         | any          |
| y       | (rank of x) | int32, int64 |

Options: out_type, which must be the output's type.
Source: LiteRT 2.3, shape.cc Prepare.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the result, which is known as soon as the shape is."""
    x, y = node.input(0), node.outputs[0]
    out_type = int(node.options["out_type"])
    node.check(out_type == y.type, "out_type", y, expected=int(y.type), got=out_type)
    sizes = np.array(x.shape, np.dtype(y.type.label))
    sizes.setflags(write=False)
    return Prepared((sizes.shape,), sizes, eval_shape)


def eval_shape(sizes: Array, x: Array) -> Array:
    """Return the shape without arithmetic."""
    return sizes


KERNELS = (Kernel("SHAPE", "any -> int32|int64", prepare, (1, 1)),)
