"""Operators that XNNPACK's delegate takes and XNNPACK then fails to define, so that the whole model is refused.

Operators that move 8-bit codes: the delegate looks at types and shapes, and XNNPACK asks for one scale and zero point
on both sides.
Source: LiteRT 2.3 xnnpack_delegate.cc Subgraph::Create, GetXNNPackDatatype and the visitors of these operators;
XNNPACK xnn_subgraph_check_quantization_parameter_matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import numpy as np

from tflq.engine.kernels.delegation import RANK, check_definable, codes_known, has_activation, has_shape, is_quantized
from tflq.engine.kernels.families.activation import without_function
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.kernels.validity import Runtime, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import TensorType


def _takes_max_pool(node: Node) -> bool:
    """Return whether no stride exceeds the window. A window of one pixel is a clamp of its own."""
    sizes = [int(node.options[f"filter_{side}"]) for side in ("height", "width")]
    strides = [int(node.options[f"stride_{side}"]) for side in ("h", "w")]
    fits = all(0 < stride <= size for stride, size in zip(strides, sizes, strict=True))
    return fits and max(sizes) > 1 and has_activation(node)


def _check_clamp(node: Node) -> None:
    """Refuse a pool of one pixel between other scales, which XNNPACK clamps and scales."""
    x, y = node.input(0), node.outputs[0]
    sizes = [int(node.options[f"filter_{side}"]) for side in ("height", "width")]
    alike = x.scale == y.scale and x.zero_point == y.zero_point
    if max(sizes) == 1 and y.type != TensorType.FLOAT32 and not alike:
        node.reject("XNNPACK's pools of one pixel between scales are not modelled", y, expected=_of(x), got=_of(y))


def _takes_pad(node: Node) -> bool:
    """Return whether the paddings are constant int32, and none is negative."""
    x, paddings = node.input(0), node.input(1)
    return (
        paddings.is_constant
        and paddings.type == TensorType.INT32
        and paddings.shape == (len(x.shape), 2)
        and int(np.min(node.constant(1), initial=0)) >= 0
        and has_shape(x, 1)
        and has_shape(node.outputs[0], 1)
    )


def _takes_slice(node: Node) -> bool:
    """Return whether begin and size are constant, and no size is 0 or -1."""
    begin, size = node.input(1), node.input(2)
    return begin.is_constant and size.is_constant and len(begin.shape) == 1 and bool(np.all(node.constant(2) > 0))


def _takes_strided_slice(node: Node) -> bool:
    """Return whether only masks of begin and end are set, and every stride is a constant 1."""
    masks = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    lists = [node.input(position) for position in (1, 2, 3)]
    return (
        not any(int(node.options[mask]) for mask in masks)
        and all(one.is_constant and one.type == TensorType.INT32 for one in lists)
        and all(one.shape == (len(node.input(0).shape),) for one in lists)
        and bool(np.all(node.constant(3) == 1))
    )


def _takes_transpose(node: Node) -> bool:
    """Return whether the permutation is constant."""
    return node.input(1).is_constant and has_shape(node.input(0), 1)


def _takes_blocks(node: Node) -> bool:
    """Return whether blocks are larger than a pixel and, in SPACE_TO_DEPTH, fill the image."""
    size, shape = int(node.options["block_size"]), node.input(0).shape
    fills = node.op == "DEPTH_TO_SPACE" or (len(shape) > 2 and shape[1] % size == 0 == shape[2] % size)
    return size > 1 and fills


def _takes_resize(node: Node) -> bool:
    """Return whether the size is constant and positive."""
    size = node.input(1)
    known = size.is_constant and bool(np.all(node.constant(1) > 0))
    return known and has_shape(node.input(0), 4, 4) and has_shape(node.outputs[0], 4, 4)


def _takes_concatenation(node: Node) -> bool:
    """Return whether two to five operands are joined along a dimension that they have; uint8 has to have one scale."""
    axis, y = int(node.options["axis"]), node.outputs[0]
    operands = [operand for operand in node.inputs if operand is not None]
    known = all(axis < len(operand.shape) for operand in operands)
    alike = all(one.scale == y.scale and one.zero_point == y.zero_point for one in operands)
    return 2 <= len(operands) <= 5 and known and (alike or y.type != TensorType.UINT8)


def _takes_split(node: Node) -> bool:
    """Return whether there are two to four parts along a constant dimension."""
    return 2 <= len(node.outputs) <= 4 and node.input(0).is_constant


Prepare = Callable[[Node, Arithmetic], Prepared]


@dataclass(frozen=True, slots=True)
class Move:
    """When the delegate takes an operator that moves codes, the position of its first operand of codes, and since when.

    Before, XNNPACK compared no scales, or the delegate left the operator.
    """

    takes: Callable[[Node], bool]
    first: int = 0
    since: str = "litert-1.0"

    def operands(self, node: Node) -> tuple[Operand, ...]:
        """Return the operands whose codes move."""
        if node.op == "CONCATENATION":
            return tuple(operand for operand in node.inputs if operand is not None)
        return (node.input(self.first),)


#: Operators that move codes, and whose scales must be equal where the delegate takes them.
MOVES: Mapping[str, Move] = MappingProxyType(
    {
        "CONCATENATION": Move(_takes_concatenation),
        "DEPTH_TO_SPACE": Move(_takes_blocks),
        "MAX_POOL_2D": Move(_takes_max_pool),
        "PAD": Move(_takes_pad),
        "RESIZE_BILINEAR": Move(_takes_resize),
        "SLICE": Move(_takes_slice),
        "SPACE_TO_DEPTH": Move(_takes_blocks),
        "SPLIT": Move(_takes_split, first=1, since="litert-2.1"),
        "STRIDED_SLICE": Move(_takes_strided_slice, since="litert-1.4"),
        "TRANSPOSE": Move(_takes_transpose, since="litert-1.4"),
    }
)


def refusing(row: Kernel, runtime: Runtime) -> Kernel:
    """Return the row without the nodes that a runtime's XNNPACK takes and cannot define."""
    move = MOVES.get(row.op)
    if move is None or not xnnpack(move.since).holds(runtime) or not row.signature.makes(*codes_known(runtime)):
        return row
    return replace(row, prepare=_guard(row.prepare, row.op, codes_known(runtime)))


@cache
def _guard(inner: Prepare, op: str, types: tuple[TensorType, ...]) -> Prepare:
    """Return one function for each `inner`, so that tables which share a row still share it."""
    move = MOVES[op]

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        operands = move.operands(node)
        is_taken = _is_taken(node, move, (*operands, *node.outputs), types)
        if is_taken:
            _check_move(node, operands)
        elif op == "MAX_POOL_2D" and is_quantized(operands[0]) and operands[0].type in types:
            _check_clamp(node)
        return inner(_as_taken(node) if is_taken else node, arithmetic)

    return prepare


def _is_taken(node: Node, move: Move, tensors: Sequence[Operand], types: tuple[TensorType, ...]) -> bool:
    """Return whether the delegate takes a move of these tensors."""
    known = all(one.type == TensorType.FLOAT32 or (one.type in types and is_quantized(one)) for one in tensors)
    return known and max(len(one.shape) for one in tensors) <= RANK and move.takes(node)


def _as_taken(node: Node) -> Node:
    """Return the node without what is not looked at: declared shapes of outputs, the activation of CONCATENATION."""
    free = replace(node, outputs=tuple(replace(y, shape=()) for y in node.outputs))
    return without_function(free) if node.op == "CONCATENATION" else free


def _check_move(node: Node, operands: Sequence[Operand]) -> None:
    """Refuse a move that the delegate takes between other scales or zero points."""
    if node.outputs[0].type == TensorType.FLOAT32:
        return
    check_definable(node, (*operands, *node.outputs))
    for x in operands:
        for y in node.outputs:
            if x.scale != y.scale or x.zero_point != y.zero_point:
                node.reject("XNNPACK asks for the input's scale and zero point", y, expected=_of(x), got=_of(y))


def _of(operand: Operand) -> str:
    return f"{operand.scale:.9g} and {int(operand.zero_point)}"
