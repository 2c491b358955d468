"""RANK: the number of dimensions of a tensor.

| operand | shape  | types |
|---------|--------|-------|
| x       | any    | any   |
| y       | scalar | int32 |

Source: LiteRT 2.3, rank.cc Prepare.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the result, which is known as soon as the shape is."""
    rank = np.array(len(node.input(0).shape), np.int32)
    rank.setflags(write=False)
    return Prepared(((),), rank, eval_rank)


def eval_rank(rank: Array, x: Array) -> Array:
    """Return the rank without arithmetic."""
    return rank


KERNELS = (Kernel("RANK", "any -> int32", prepare, (1, 1)),)
