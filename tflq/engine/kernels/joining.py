"""CONCATENATION, TILE, BROADCAST_TO, BROADCAST_ARGS: join and repeat.

CONCATENATION: join along one dimension.

| operand | shape                    | types                                        | quantization           |
|---------|--------------------------|----------------------------------------------|------------------------|
| x...    | equal except on the axis | float32, float16, bfloat16, uint8, int8,     | int8: as y             |
|         |                          | int16, int32, uint32, int64, bool, int4      | int16: zero point 0    |
| y       | x's, summed on the axis  | as x                                         | per tensor             |

Options: axis (negative: from the back); fused_activation_function must be NONE.
uint8 inputs whose scale or zero point is not the output's are rescaled; scales of int16 are ignored. Scalars give a
vector. On AArch64 up to 2.14, uint8 loses its zero point before the product: the wheel was built with float arithmetic
that may be reordered.
Source: LiteRT 2.3 and TensorFlow 2.14, concatenation.cc Prepare; reference/concatenation.h ConcatenationWithScaling.

TILE: repeat along every dimension.

| operand     | shape             | types                          | quantization |
|-------------|-------------------|--------------------------------|--------------|
| x           | any               | every 8 to 64 bit type, string | passed by    |
| multipliers | (rank of x)       | int32, int64                   |              |
| y           | x * multipliers   | as x                           | passed by    |

Source: LiteRT 2.3, tile.cc MultiplyShapeDims, TileOneDimension.

BROADCAST_TO: repeat dimensions of size 1 until a shape is filled.

| operand | shape                   | types                   | quantization |
|---------|-------------------------|-------------------------|--------------|
| x       | any                     | every 8 to 64 bit type  | passed by    |
| shape   | (n), n >= rank of x     | int32, int64            |              |
| y       | shape                   | as x                    | passed by    |

Source: LiteRT 2.3, broadcast_to.cc ResizeOutputTensor; reference/broadcast_to.h BroadcastTo.

BROADCAST_ARGS: the shape that two shapes broadcast to.

| operand | shape            | types        |
|---------|------------------|--------------|
| a       | (m)              | int32, int64 |
| b       | (n)              | as a         |
| y       | (max of m and n) | as a         |

Shapes that do not fit abort the source. int64 sizes wrap to 32 bits in passing.
Source: LiteRT 2.3, reference/broadcast_args.h BroadcastArgs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tflq.engine.kernels.checks import (
    axis_within,
    integers,
    require_rank,
    require_same_quantization,
    require_same_type,
    require_size,
    require_zero_point_zero,
)
from tflq.engine.kernels.families.movement import INDEX, SIZED, Copying
from tflq.engine.kernels.kernel import Call, Kernel, Node, Operand, Prepared, Shape, filling, in_turn, valid
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.rounding import INT32_MAX, nearest_half_away
from tflq.engine.numerics.tables import look_up_8bit
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The dimension to join along; for every input the 256 output codes of its codes, or None for a plain copy."""

    shape: Shape  # of the output
    axis: int
    tables: tuple[Array | None, ...]


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require shapes that agree except on the axis."""
    operands = [node.input(position) for position in range(len(node.inputs))]
    node.check(bool(operands), "number of inputs", expected="at least 1", got=0)
    first, y = operands[0], node.outputs[0]
    require_same_type(node, first, *operands, y)
    function = int(node.options["fused_activation_function"])
    node.check(function == 0, "fused activation function", expected="NONE", got=function)
    if first.type == TensorType.INT8:
        require_same_quantization(node, y, *operands)
    if first.type == TensorType.INT16:
        require_zero_point_zero(node, y, *operands)
    axis = axis_within(node, int(node.options["axis"]), max(len(first.shape), 1))
    shape = joined_shape(node, operands, axis)
    tables = tuple(rescaling(x, y, arithmetic) if first.type == TensorType.UINT8 else None for x in operands)
    return Prepared((shape,), OpData(shape, axis, tables), eval_concatenation)


def joined_shape(node: Node, operands: list[Operand], axis: int) -> Shape:
    """Return the output's shape; scalars count as vectors of one element."""
    shapes = [x.shape or (1,) for x in operands]
    first = shapes[0]
    for x, shape in zip(operands, shapes, strict=True):
        fits = len(x.shape) == len(operands[0].shape) and all(
            a == b for d, (a, b) in enumerate(zip(shape, first, strict=True)) if d != axis
        )
        node.check(fits, f"shape except for dimension {axis}", x, expected=list(operands[0].shape), got=list(x.shape))
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def rescaling(x: Operand, y: Operand, arithmetic: Arithmetic) -> Array | None:
    """Return the output codes of the 256 input codes, or None if they are the same.

    Everything is float32: the scale is x's times the rounded reciprocal of y's, and the zero point is scaled before it
    is added. Rounding: half away from zero, then clamped to 0..255.
    """
    if x.zero_point == y.zero_point and x.scale == y.scale:
        return None
    scale = x.scale * (np.float32(1) / y.scale)
    bias = np.float32(-x.zero_point) * scale
    real = arithmetic.multiply_add(np.arange(256).astype(np.float32), scale, bias)
    if not np.all(np.abs(real) <= INT32_MAX):
        raise UndefinedResultError("ConcatenationWithScaling", f"{x.name!r} rescaled by {scale} leaves int32")
    codes = round_half_away_float32(real).astype(np.int64) + y.zero_point
    return np.clip(codes, 0, 255).astype(np.uint8)


def round_half_away_float32(x: Array) -> Array:
    """Return the nearest integers, ties away from zero: C's roundf()."""
    whole = np.trunc(x)
    rounded: Array = whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x)
    return rounded


@filling(lambda data, *inputs: (data.shape, inputs[0].dtype))
def eval_concatenation(data: OpData, out: Array, *inputs: Array) -> Call:
    """Source: reference_ops::Concatenation, ConcatenationWithScaling."""
    sizes = [x.shape[data.axis] if x.ndim else 1 for x in inputs]
    places = np.split(out, np.cumsum(sizes)[:-1], data.axis)
    parts = zip(places, inputs, data.tables, strict=True)
    return in_turn(
        [Copying(x, place) if table is None else partial(_put, place, x, table) for place, x, table in parts]
    )


def _put(place: Array, x: Array, table: Array) -> None:
    place[...] = look_up_8bit(table, x)


_X = "float32|float16|bfloat16|uint8|int8|int16|int32|uint32|int64|bool|int4"


def prepare_factored(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, with other tables for the inputs that are rescaled."""
    prepared = prepare(node, arithmetic)
    y = node.outputs[0]
    tables = tuple(
        None if table is None else rescaling_factored(node.input(position), y)
        for position, table in enumerate(prepared.data.tables)
    )
    return replace(prepared, data=replace(prepared.data, tables=tables))


def rescaling_factored(x: Operand, y: Operand) -> Array:
    """Return codes of the 256 input codes. Rounding: float32 product, then half away, then clamped to 0..255."""
    scale = x.scale * (np.float32(1) / y.scale)
    real = (np.arange(256) - x.zero_point).astype(np.float32) * scale
    return np.clip(nearest_half_away(real).astype(np.int64) + y.zero_point, 0, 255).astype(np.uint8)


_CONCATENATION = (
    Kernel("CONCATENATION", f"{_X}* -> {_X}", prepare, (1, 7)),
    *valid(
        tflite(until="tflite-2.14", cpu="arm64"), Kernel("CONCATENATION", "uint8* -> uint8", prepare_factored, (1, 7))
    ),
)


def prepare_tile(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one multiplier, not negative, for every dimension."""
    x, operand = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    times = integers(node, 1)
    node.check(len(times) == len(x.shape), "number of multipliers", operand, expected=len(x.shape), got=len(times))
    require_size(node, operand, times)
    shape = tuple(size * n for size, n in zip(x.shape, times, strict=True))
    return Prepared((shape,), times, eval_tile)


def eval_tile(times: tuple[int, ...], x: Array, multipliers: Array) -> Array:
    """Source: tile.cc Tile."""
    return np.tile(x, times)


_TILE_X = f"{SIZED}|string"

_TILE = (Kernel("TILE", f"{_TILE_X} {INDEX} -> {_TILE_X}", prepare_tile, (1, 3), shape_operands=(1,)),)


def prepare_broadcast_to(node: Node, arithmetic: Arithmetic) -> Prepared:
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


_BROADCAST_TO = (
    Kernel("BROADCAST_TO", f"{SIZED} {INDEX} -> {SIZED}", prepare_broadcast_to, (2, 4), shape_operands=(1,)),
)


def prepare_broadcast_args(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare an output as long as the longer shape."""
    a, b = node.input(0), node.input(1)
    require_same_type(node, a, b, node.outputs[0])
    require_rank(node, a, 1)
    require_rank(node, b, 1)
    length = max(a.shape[0], b.shape[0])
    return Prepared(((length,),), length, eval_broadcast_args)


def eval_broadcast_args(length: int, a: Array, b: Array) -> Array:
    """Broadcast shapes. Missing leading sizes are 1; a size of 1 gives way to the other."""
    left, right = (pad(x, length) for x in (a, b))
    if np.any((left != right) & (left != 1) & (right != 1)):
        raise UndefinedResultError("BroadcastArgs", f"{a.tolist()} and {b.tolist()} do not broadcast")
    return np.where(left == 1, right, left).astype(a.dtype)


def pad(sizes: Array, length: int) -> Array:
    """Return sizes as int32, wrapped, behind leading ones."""
    full = np.ones(length, np.int32)
    full[length - len(sizes) :] = sizes.astype(np.int32)
    return full


_BROADCAST_ARGS = (Kernel("BROADCAST_ARGS", f"{INDEX} {INDEX} -> {INDEX}", prepare_broadcast_args, (1, 1)),)

#: The rows of all operators above.
KERNELS = (*_CONCATENATION, *_TILE, *_BROADCAST_TO, *_BROADCAST_ARGS)
