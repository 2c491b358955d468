"""SLICE: a block of a tensor.

| operand | shape       | types                                | quantization |
|---------|-------------|--------------------------------------|--------------|
| x       | any         | every 8 to 64 bit type, int4, string | passed by    |
| begin   | (rank of x) | int32, int64                         |              |
| size    | (rank of x) | as begin                             |              |
| y       | size        | as x                                 | passed by    |

A size of -1 reaches to the end. From TensorFlow 2.10 on, an output is not resized if its declared shape is whole;
LiteRT 2.3 refuses one that is another shape.
Source: LiteRT 2.3, slice.cc CalculateOutputShapeVector.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.engine.kernels.families.element_types import SIZED
from tflq.engine.kernels.families.movement import moving
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.operands import integers, require_same_type
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array

Block = tuple[slice, ...]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require a block inside the input."""
    x, begin, size = node.input(0), node.input(1), node.input(2)
    require_same_type(node, x, node.outputs[0])
    require_same_type(node, begin, size)
    rank = len(x.shape)
    for operand in (begin, size):
        node.check(operand.shape == (rank,), "shape", operand, expected=[rank], got=list(operand.shape))
    starts = integers(node, 1)
    sizes = [
        requested if requested != -1 else extent - start
        for extent, start, requested in zip(x.shape, starts, integers(node, 2), strict=True)
    ]
    for axis, (extent, start, count) in enumerate(zip(x.shape, starts, sizes, strict=True)):
        inside = start >= 0 and count >= 0 and start + count <= extent
        node.check(inside, f"begin {start}, size {count} of dimension {axis}", expected=f"inside {extent}")
    block: Block = tuple(slice(start, start + count) for start, count in zip(starts, sizes, strict=True))
    return Prepared((tuple(sizes),), block, eval_slice)


def prepare_declared(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse an output whose declared shape is whole and another one: it is not resized."""
    prepared, declared = prepare(node, arithmetic), _declare(node)
    if declared is not None and declared != prepared.shapes[0]:
        node.reject("declared shape", node.outputs[0], expected=list(prepared.shapes[0] or ()), got=list(declared))
    return prepared


def prepare_unchecked(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Raise for an output whose declared shape is whole and another one: it is written as if it were resized."""
    prepared, declared = prepare(node, arithmetic), _declare(node)
    if declared is not None and declared != prepared.shapes[0]:
        raise UndefinedResultError(node.op, "the output keeps a declared shape that is another one")
    return prepared


def _declare(node: Node) -> tuple[int, ...] | None:
    """Return the output's declared shape; None if it has no dimension, or one that is open."""
    y = node.outputs[0]
    return y.shape if y.shape and not y.is_open else None


@filling(lambda block, x, *_: (tuple(part.stop - part.start for part in block), x.dtype))
def eval_slice(block: Block, out: Array, x: Array, begin: Array, size: Array) -> Call:
    """Source: reference_ops::Slice."""
    return moving(x[block] if block else x, out)


_X = f"{SIZED}|int4|string"

_ROW = Kernel("SLICE", f"{_X} int32|int64 int32|int64 -> {_X}", prepare, (1, 8), shape_operands=(1, 2))

KERNELS = (
    _ROW,
    *valid(tflite("tflite-2.11", "litert-2.2"), replace(_ROW, prepare=prepare_unchecked)),
    *valid(tflite("litert-2.3"), replace(_ROW, prepare=prepare_declared)),
)
