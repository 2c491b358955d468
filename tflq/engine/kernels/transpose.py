"""TRANSPOSE: permute the dimensions.

| operand | shape              | types                       | quantization |
|---------|--------------------|-----------------------------|--------------|
| x       | up to 8 dimensions | every 4 to 64 bit type      | passed by    |
| perm    | (rank of x)        | int32                       |              |
| y       | x's, permuted      | as x                        | passed by    |

Dimension i of the output is dimension perm[i] of the input; negative entries count from the back.
Source: LiteRT 2.3, transpose.cc ResizeOutputTensor.
"""

from __future__ import annotations

from tflq.engine.kernels.families.element_types import BITS_4, SIZED
from tflq.engine.kernels.families.movement import moving
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import axis_within, integers, require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the permutation, counted from the front. One that repeats a dimension is undefined in the source."""
    x, perm = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    rank = len(x.shape)
    require_rank(node, x, 0, 8)
    node.check(perm.shape == (rank,), "shape of the permutation", perm, expected=[rank], got=list(perm.shape))
    order = tuple(axis_within(node, axis, rank) for axis in integers(node, 1))
    node.check(len(set(order)) == rank, "permutation", perm, expected="every dimension once", got=list(order))
    return Prepared((tuple(x.shape[axis] for axis in order),), order, eval_transpose)


@filling(lambda order, x, _: (tuple(x.shape[axis] for axis in order), x.dtype))
def eval_transpose(order: tuple[int, ...], out: Array, x: Array, perm: Array) -> Call:
    """Source: reference_ops::Transpose."""
    return moving(x.transpose(order), out)


_X = f"{BITS_4}|{SIZED}"

KERNELS = (Kernel("TRANSPOSE", f"{_X} int32 -> {_X}", prepare, (1, 9), shape_operands=(1,)),)
