"""GATHER: slices along one dimension, by position.

| operand   | shape                                    | types                                     | quantization |
|-----------|------------------------------------------|-------------------------------------------|--------------|
| x         | at least one dimension; string: a vector | float32, float16, bfloat16, uint8, int4,  | passed by    |
|           |                                          | int8, int16, int32, int64, bool, string   |              |
| positions | any                                      | int16, int32, int64                       |              |
| y         | x[:axis] + positions[batch_dims:] +      | as x                                      | passed by    |
|           | x[axis + 1:]                             |                                           |              |

Options: axis, batch_dims (leading dimensions that x and positions share); negative ones count from the back.
A negative position, or one beyond the dimension, fails the run. Refused: int4 with an odd number of elements behind the
axis, of which the source copies whole bytes only.
Source: LiteRT 2.3, gather.cc Prepare; reference/gather.h Gather.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.families.indices import check_positions
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import axis_within, require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class OpData:
    """`folded` is the input as (shared, before the axis, axis, behind the axis)."""

    axis: int
    batched: bool
    folded: tuple[int, int, int, int]
    picked: tuple[int, int]  # positions as (shared, the rest)
    shape: Shape  # of the output


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require shared dimensions that agree in size and come before the axis."""
    x, positions = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    if x.type == TensorType.STRING:
        require_rank(node, x, 1)
    axis = axis_within(node, int(node.options["axis"]), len(x.shape))
    shared = int(node.options["batch_dims"])
    shared += len(positions.shape) if shared < 0 else 0
    node.check(0 <= shared <= min(axis, len(positions.shape)), "batch_dims", expected=f"0 to {axis}", got=shared)
    common = x.shape[:shared]
    leading = positions.shape[:shared]
    node.check(common == leading, "shared dimensions", positions, expected=list(common), got=list(leading))
    behind = prod(x.shape[axis + 1 :])
    if x.type == TensorType.INT4 and behind % 2 != 0:
        raise UndefinedResultError("Gather", f"{behind} int4 elements behind the axis: half bytes stay unwritten")
    data = OpData(
        axis=axis,
        batched=shared > 0,
        folded=(prod(common), prod(x.shape[shared:axis]), x.shape[axis], behind),
        picked=(prod(common), prod(positions.shape[shared:])),
        shape=x.shape[:axis] + positions.shape[shared:] + x.shape[axis + 1 :],
    )
    return Prepared((data.shape,), data, eval_gather)


@filling(lambda data, x, _: (data.shape, x.dtype))
def eval_gather(data: OpData, out: Array, x: Array, positions: Array) -> Call:
    """Source: reference_ops::Gather."""

    def call() -> None:
        check_positions("gather", positions, data.folded[2])
        if not data.batched:
            x.take(positions, data.axis, out=out, mode="clip")  # which needs no copy of `out`; none is clipped
            return
        groups, before, extent, behind = data.folded
        first = np.arange(groups * before).reshape(groups, before, 1) * extent  # slices are counted through
        slices = first + positions.reshape(groups, 1, data.picked[1])
        rows = x.reshape(groups * before * extent, behind)
        rows.take(slices.reshape(-1), 0, out=out.reshape(slices.size, behind), mode="clip")

    return call


_X = "float32|float16|bfloat16|uint8|int4|int8|int16|int32|int64|bool|string"

KERNELS = (Kernel("GATHER", f"{_X} int16|int32|int64 -> {_X}", prepare, (1, 8)),)
