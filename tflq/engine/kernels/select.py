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

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.element_types import SIZED
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.geometry.flat import broadcast_steps, flat_places
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array

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
    once=lambda picked, condition, x, y: _broadcast(picked, condition, x, y),
)
def eval_select(picked: Shape, out: Array, condition: Array, x: Array, y: Array) -> Call:
    """Source: Select, of three operands of one shape, `picked`."""
    bits = np.dtype(f"u{out.dtype.itemsize}")
    values = (np.asarray(a, order="C").reshape(-1).view(bits) for a in (x, y, out))
    return _select.bound(np.asarray(condition, order="C").reshape(-1), *values)


def _broadcast(picked: Shape, condition: Array, x: Array, y: Array) -> Array:
    chosen: Array = np.where(condition.reshape(picked), x, y)
    return chosen


@filling(
    lambda picked, condition, x, y: (np.broadcast_shapes(picked, x.shape, y.shape), x.dtype),
    once=lambda picked, condition, x, y: _broadcast(picked, condition, x, y),
)
def eval_broadcast(picked: Shape, out: Array, condition: Array, x: Array, y: Array) -> Call:
    """Source: RankOneSelect, BroadcastSelect5DSlow. `picked` is the condition's shape as x sees it."""
    shape = out.shape or (1,)
    bits = np.dtype(f"u{out.dtype.itemsize}")
    steps = [broadcast_steps(of, shape) for of in (picked, x.shape, y.shape)]
    rows = [flat_places(shape[:-1], step[:-1]) for step in steps]
    values = (np.asarray(a, order="C").reshape(-1).view(bits) for a in (x, y))
    flags, target = np.asarray(condition, order="C").reshape(-1), out.reshape(len(rows[0]), shape[-1]).view(bits)
    return _select_rows.bound(target, *rows, flags, *values, *(step[-1] for step in steps))


@in_pieces(condition="r", x="r", y="r", out="r")
@compiled
def _select(condition: Array, x: Array, y: Array, out: Array) -> None:
    """Compute out = x where the condition holds, else y.

    Eval guarantees: all have the same size.
    """
    for i in range(out.size):
        first, second = x[i], y[i]
        out[i] = first if condition[i] else second


@in_pieces(out="r", condition_rows="r", x_rows="r", y_rows="r")
@compiled
def _select_rows(
    out: Array,
    condition_rows: Array,
    x_rows: Array,
    y_rows: Array,
    condition: Array,
    x: Array,
    y: Array,
    condition_step: Int,
    x_step: Int,
    y_step: Int,
) -> None:
    """Compute rows of `out` (R, N) as _select does, from operands whose rows begin at these places.

    Eval guarantees: row + step * n is inside the operand for all n below N.
    """
    for r in range(out.shape[0]):
        c, i, j = condition_rows[r], x_rows[r], y_rows[r]
        if condition_step == 0:
            source, start, step = (x, i, x_step) if condition[c] else (y, j, y_step)
            if step == 1:
                for n in range(out.shape[1]):
                    out[r, n] = source[start + n]
            else:
                for n in range(out.shape[1]):
                    out[r, n] = source[start]
        elif x_step == 1 and y_step == 1:
            for n in range(out.shape[1]):
                first, second = x[i + n], y[j + n]
                out[r, n] = first if condition[c + n] else second
        else:
            for n in range(out.shape[1]):
                first, second = x[i + x_step * n], y[j + y_step * n]
                out[r, n] = first if condition[c + n] else second


def eval_single(shape: Shape, condition: Array, x: Array, y: Array) -> Array:
    """Source: reference_ops::Select on one element."""
    return (x if condition.reshape(()) else y).reshape(shape)


KERNELS = (
    Kernel("SELECT", f"bool {SIZED} {SIZED} -> {SIZED}", prepare_select, (1, 4)),
    Kernel("SELECT_V2", f"bool {SIZED} {SIZED} -> {SIZED}", prepare_select_v2, (1, 2)),
)
