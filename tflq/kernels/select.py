"""SELECT, SELECT_V2: of two tensors, element by element, the one that a condition picks.

| operand   | shape                          | types                   | quantization |
|-----------|--------------------------------|-------------------------|--------------|
| condition | as x; SELECT: scalar or vector | bool                    |              |
| x         | any                            | every 8 to 64 bit type  | passed by    |
| y         | as x                           | as x                    | passed by    |
| z         | as x                           | as x                    | passed by    |

SELECT's vector picks whole rows. SELECT_V2 broadcasts all three, up to 8 dimensions. Where everything has one element,
the output keeps the shape that the file gives it.
Source: LiteRT 2.3, select.cc SelectPrepare; reference/select.h.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tflq.jit.compiled import compiled
from tflq.jit.pieces import in_pieces
from tflq.kernels.families.element_types import SIZED
from tflq.kernels.filling import Call, filling
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape
from tflq.kernels.operands import require_same_type
from tflq.numerics.arithmetic import Arithmetic

MAX_RANK = 8


def prepare_select(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require a condition that has x's shape, or picks rows of it."""
    condition, x, y = (node.input(position) for position in range(3))
    require_same_type(node, x, y, node.outputs[0])
    if one_element_each(node):
        return Prepared((node.outputs[0].shape,), node.outputs[0].shape, eval_single)
    node.check(x.shape == y.shape, "shape", y, expected=list(x.shape), got=list(y.shape))
    if condition.shape == x.shape:
        return Prepared((x.shape,), x.shape, eval_select)
    allowed = [x.shape, x.shape[:1], ()]
    node.check(condition.shape in allowed, "shape", condition, expected=f"one of {allowed}", got=condition.shape)
    picked = condition.shape + (1,) * (len(x.shape) - len(condition.shape))
    return Prepared((x.shape,), picked, eval_broadcast)


def prepare_select_v2(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Broadcast all three operands."""
    condition, x, y = (node.input(position) for position in range(3))
    require_same_type(node, x, y, node.outputs[0])
    if one_element_each(node):
        return Prepared((node.outputs[0].shape,), node.outputs[0].shape, eval_single)
    shapes = [o.shape for o in (condition, x, y)]
    shape = broadcast(shapes)
    if shape is None or len(shape) > MAX_RANK:
        node.refuse("shapes to broadcast", expected=f"compatible, up to {MAX_RANK} dimensions", got=shapes)
    is_equal = condition.shape == x.shape == y.shape
    return Prepared((shape,), condition.shape, eval_select if is_equal else eval_broadcast)


def broadcast(shapes: list[Shape]) -> Shape | None:
    """Return the common shape, or None."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def one_element_each(node: Node) -> bool:
    """Return whether inputs and output, as the file gives it, all have one element."""
    operands = [*(node.input(position) for position in range(3)), node.outputs[0]]
    return all(prod(operand.shape) == 1 for operand in operands)


@filling(
    lambda picked, condition, x, y: (x.shape, x.dtype),
    once=lambda picked, condition, x, y: eval_broadcast(picked, condition, x, y),
)
def eval_select(picked: Shape, out: Array, condition: Array, x: Array, y: Array) -> Call:
    """Source: Select, of three operands of one shape, `picked`."""
    bits = np.dtype(f"u{out.dtype.itemsize}")
    values = (np.asarray(a, order="C").reshape(-1).view(bits) for a in (x, y, out))
    return _select.bound(np.asarray(condition, order="C").reshape(-1), *values)


def eval_broadcast(picked: Shape, condition: Array, x: Array, y: Array) -> Array:
    """Source: RankOneSelect, BroadcastSelect5DSlow. `picked` is the condition's shape as x sees it."""
    chosen: Array = np.where(condition.reshape(picked), x, y)
    return chosen


@in_pieces(condition="r", x="r", y="r", out="r")
@compiled
def _select(condition: Array, x: Array, y: Array, out: Array) -> None:
    """Compute out = x where the condition holds, else y.

    Eval guarantees: all have the same size.
    """
    for i in range(out.size):
        first, second = x[i], y[i]
        out[i] = first if condition[i] else second


def eval_single(shape: Shape, condition: Array, x: Array, y: Array) -> Array:
    """Source: reference_ops::Select on one element."""
    return (x if condition.reshape(()) else y).reshape(shape)


KERNELS = (
    Kernel("SELECT", f"bool {SIZED} {SIZED} -> {SIZED}", prepare_select, (1, 4)),
    Kernel("SELECT_V2", f"bool {SIZED} {SIZED} -> {SIZED}", prepare_select_v2, (1, 2)),
)
