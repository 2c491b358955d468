"""Operators that keep every element, or none: other shapes, other orders of dimensions, parts and stacks.

| operator    | operands -> results     | options                    | result                                          |
|-------------|-------------------------|----------------------------|-------------------------------------------------|
| SHAPE       | x -> y                  | out_type, y's type         | the dimensions of x                             |
| RANK        | x -> y                  |                            | the number of dimensions, a scalar              |
| ZEROS_LIKE  | x -> y                  |                            | zeros in x's shape                              |
| BITCAST     | x -> y                  |                            | the same bytes; where widths differ, one more   |
|             |                         |                            | dimension or the last one gone                  |
| RESHAPE     | x, shape? -> y          | new_shape                  | the same elements                               |
| SQUEEZE     | x -> y                  | squeeze_dims               | without them; none: without all of size 1       |
| EXPAND_DIMS | x, axis -> y            |                            | one more dimension of size 1, as `axis` of y    |
| TRANSPOSE   | x, perm -> y            |                            | dimension i is x's dimension perm[i]            |
| PACK        | x... -> y               | values_count, axis         | stacked along a new dimension                   |
| UNPACK      | x -> y...               | num, axis                  | slices along a dimension, which disappears      |
| SPLIT       | axis, x -> y...         | num_splits                 | equal parts along a dimension                   |
| SPLIT_V     | x, sizes, axis -> y...  | num_splits                 | parts of these sizes; one may be -1: the rest   |

Axes count from the back if they are negative. Scales pass by, but those of EXPAND_DIMS, PACK and UNPACK are equal, and
int16 has zero point 0 in EXPAND_DIMS. The shape operand of RESHAPE counts if it is an int32 vector, else its option (a
lone 0 there means a scalar, as old files write it); one dimension may be -1: what is left over. SQUEEZE and TRANSPOSE
know eight dimensions.
Source: LiteRT 2.3, shape.cc Prepare; rank.cc Prepare; zeros_like.cc; bitcast.cc CalculateShape; reshape.cc
GetOutputShape, internal/reshape_utils.h ResolveOutputShape; squeeze.cc Prepare; expand_dims.cc ExpandTensorDim;
transpose.cc ResizeOutputTensor; pack.cc Prepare; unpack.cc Prepare; split.cc and split_v.cc ResizeOutputTensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

import numpy as np

from tflq.engine.kernels.checks import (
    axis_within,
    integer,
    integers,
    integers_option,
    require_rank,
    require_same_quantization,
    require_same_type,
    require_size,
    require_zero_point_zero,
)
from tflq.engine.kernels.families.movement import (
    BITS_4,
    INDEX,
    SIZED,
    Copying,
    Pieces,
    contiguous,
    eval_view,
    prepare_view,
)
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, Shape, filling, fillings, in_turn
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


def prepare_shape(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the result, which is known as soon as the shape is."""
    x, y = node.input(0), node.outputs[0]
    out_type = int(node.options["out_type"])
    node.check(out_type == y.type, "out_type", y, expected=int(y.type), got=out_type)
    return _known(np.array(x.shape, np.dtype(y.type.label)))


def prepare_rank(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the result, which is known as soon as the shape is."""
    return _known(np.array(len(node.input(0).shape), np.int32))


def _known(value: Array) -> Prepared:
    value.setflags(write=False)
    return Prepared((value.shape,), value, eval_known)


def eval_known(value: Array, x: Array) -> Array:
    """Return the value without arithmetic."""
    return value


def prepare_zeros_like(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare from the shape only."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    return Prepared((x.shape,), x.shape, eval_zeros_like)


def eval_zeros_like(shape: Shape, x: Array) -> Array:
    """Source: zeros_like.cc Eval."""
    return np.zeros(shape, x.dtype)


@dataclass(frozen=True, slots=True)
class BytesData:
    """The output's element type and shape."""

    dtype: np.dtype[np.generic]
    shape: Shape


def prepare_bitcast(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require joined elements that fill the wider one exactly."""
    x, y = node.input(0), node.outputs[0]
    source, target = CARRIER[x.type], CARRIER[y.type]
    shape = x.shape
    if source.itemsize > target.itemsize:
        shape = (*x.shape, source.itemsize // target.itemsize)
    elif source.itemsize < target.itemsize:
        ratio = target.itemsize // source.itemsize
        node.check(x.shape[-1:] == (ratio,), "last dimension", x, expected=ratio, got=list(x.shape[-1:]))
        shape = x.shape[:-1]
    return Prepared((shape,), BytesData(target, shape), eval_bitcast)


def eval_bitcast(data: BytesData, x: Array) -> Array:
    """Source: a memcpy. Little endian, as the file is."""
    return np.ascontiguousarray(x).reshape(-1).view(data.dtype).reshape(data.shape)


def prepare_reshape(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the output's shape with its -1."""
    x, y = node.input(0), node.outputs[0]
    require_same_type(node, x, y)
    shape = resolve(node, x.shape, requested_shape(node))
    node.check(prod(shape) == prod(x.shape), "number of elements", y, expected=prod(x.shape), got=prod(shape))
    return prepare_view(shape)


def requested_shape(node: Node) -> Shape:
    """Return the shape as the file asks for it."""
    operand = node.optional(1)
    if operand is not None and operand.type == TensorType.INT32 and len(operand.shape) == 1:
        return integers(node, 1)
    shape = integers_option(node, "new_shape")
    return () if shape == (0,) else shape


def resolve(node: Node, shape: Shape, requested: Shape) -> Shape:
    """Return `requested` with its -1, if any, computed from the elements of `shape`.

    Zero dimensions on both sides are left out of the division, as long as both sides have one.
    """
    if -1 not in requested:
        require_size(node, node.outputs[0], requested)
        return requested
    node.check(requested.count(-1) == 1, "more than one dimension is -1", got=list(requested))
    stretched = requested.index(-1)
    rest = requested[:stretched] + requested[stretched + 1 :]
    require_size(node, node.outputs[0], rest)
    if prod(shape) == 0 and prod(rest) != 0:
        left = 0
    else:
        left = prod(d for d in shape if d) // prod(d for d in rest if d)
    return (*requested[:stretched], left, *requested[stretched + 1 :])


def prepare_squeeze(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Drop the dimensions named, which must have size 1."""
    x = node.input(0)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, x, 0, 8)
    named = {axis_within(node, axis, len(x.shape)) for axis in integers_option(node, "squeeze_dims")}
    for axis in named:
        node.check(x.shape[axis] == 1, f"dimension {axis} to squeeze", x, expected=1, got=x.shape[axis])
    dropped = named or {axis for axis, size in enumerate(x.shape) if size == 1}
    return prepare_view(tuple(size for axis, size in enumerate(x.shape) if axis not in dropped))


def prepare_expand_dims(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the axis, which counts in the output: rank + 1 positions."""
    x, y = node.input(0), node.outputs[0]
    require_same_type(node, x, y)
    require_same_quantization(node, x, y)
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x)
    axis = axis_within(node, integer(node, 1), len(x.shape) + 1)
    return prepare_view((*x.shape[:axis], 1, *x.shape[axis:]))


def prepare_transpose(node: Node, arithmetic: Arithmetic) -> Prepared:
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
    return Copying(x.transpose(order), out)


def prepare_pack(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require inputs that agree in shape, type and quantization."""
    operands = [node.input(position) for position in range(len(node.inputs))]
    node.check(bool(operands), "number of inputs", expected="at least 1", got=0)
    _require_count(node, "values_count", len(operands))
    first, y = operands[0], node.outputs[0]
    require_same_type(node, first, *operands, y)
    require_same_quantization(node, y, *operands)
    for x in operands:
        node.check(x.shape == first.shape, "shape", x, expected=list(first.shape), got=list(x.shape))
    axis = axis_within(node, int(node.options["axis"]), len(first.shape) + 1)
    shape = (*first.shape[:axis], len(operands), *first.shape[axis:])
    return Prepared((shape,), axis, eval_pack)


@filling(lambda axis, *inputs: ((*inputs[0].shape[:axis], len(inputs), *inputs[0].shape[axis:]), inputs[0].dtype))
def eval_pack(axis: int, out: Array, *inputs: Array) -> Call:
    """Source: reference_ops::Pack."""
    places = np.moveaxis(out, axis, 0)
    return in_turn([Copying(x, places[i : i + 1]) for i, x in enumerate(inputs)])


def prepare_unpack(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one output for every position of the axis."""
    x, count = node.input(0), len(node.outputs)
    _require_count(node, "num", count)
    node.check(prod(x.shape) > 0, "number of elements", x, expected="more than 0", got=0)
    require_same_type(node, x, *node.outputs)
    require_same_quantization(node, x, *node.outputs)
    axis = axis_within(node, int(node.options["axis"]), len(x.shape))
    node.check(x.shape[axis] == count, f"dimension {axis}", x, expected=count, got=x.shape[axis])
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    if prod(x.shape[:axis]) == 1:
        return Prepared((shape,) * count, Pieces((shape,) * count), eval_view)
    return Prepared((shape,) * count, axis, eval_unpack)


def eval_unpack(axis: int, x: Array) -> tuple[Array, ...]:
    """Source: reference_ops::Unpack."""
    return tuple(contiguous(part) for part in np.moveaxis(x, axis, 0)) if x.ndim > 1 else tuple(map(np.asarray, x))


@dataclass(frozen=True, slots=True)
class Cuts:
    """Which input is cut, and the places of the parts in it."""

    position: int
    parts: tuple[tuple[slice, ...], ...]


def prepare_split(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require equal sizes for all outputs."""
    x, count = node.input(1), len(node.outputs)
    require_same_type(node, x, *node.outputs)
    _require_count(node, "num_splits", count)
    node.check(count != 0, "num_splits", expected="not 0", got=count)
    axis = _axis_of_cuts(node, x.shape, 0)
    node.check(x.shape[axis] % count == 0, f"dimension {axis}", x, expected=f"a multiple of {count}", got=x.shape[axis])
    return _cut(x.shape, axis, (x.shape[axis] // count,) * count, position=1)


def prepare_split_v(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require sizes that add up to the dimension."""
    x, operand, count = node.input(0), node.input(1), len(node.outputs)
    require_same_type(node, x, *node.outputs)
    _require_count(node, "num_splits", count)
    node.check(operand.shape == (count,), "shape of the sizes", operand, expected=[count], got=list(operand.shape))
    axis = _axis_of_cuts(node, x.shape, 2)
    sizes = integers(node, 1)
    node.check(sizes.count(-1) <= 1, "more than one size is -1", operand, got=list(sizes))
    rest = x.shape[axis] - sum(size for size in sizes if size != -1)
    sizes = tuple(rest if size == -1 else size for size in sizes)
    require_size(node, operand, sizes)
    node.check(sum(sizes) == x.shape[axis], "sum of the sizes", operand, expected=x.shape[axis], got=sum(sizes))
    return _cut(x.shape, axis, sizes, position=0)


def _require_count(node: Node, option: str, count: int) -> None:
    stated = int(node.options[option])
    node.check(stated == count, option, expected=count, got=stated)


def _axis_of_cuts(node: Node, shape: Shape, position: int) -> int:
    values = integers(node, position)
    node.check(bool(values), "number of elements", node.input(position), expected=1, got=0)
    return axis_within(node, values[0], len(shape))


def _cut(shape: Shape, axis: int, sizes: tuple[int, ...], position: int) -> Prepared:
    """Cut the input at `position`, of that shape, into parts of `sizes` along `axis`."""
    ends = tuple(accumulate(sizes))
    whole = (slice(None),) * axis
    parts = tuple((*whole, slice(end - size, end)) for size, end in zip(sizes, ends, strict=True))
    shapes = tuple((*shape[:axis], size, *shape[axis + 1 :]) for size in sizes)
    if prod(shape[:axis]) == 1 and sum(sizes) == shape[axis]:
        return Prepared(shapes, Pieces(shapes, position), eval_view)
    return Prepared(shapes, Cuts(position, parts), eval_split)


@fillings(lambda cuts, *inputs: [(x[part].shape, x.dtype) for x in (inputs[cuts.position],) for part in cuts.parts])
def eval_split(cuts: Cuts, outs: Sequence[Array], *inputs: Array) -> Call:
    """Source: reference_ops::Split."""
    x = inputs[cuts.position]
    return in_turn([Copying(x[part], out) for out, part in zip(outs, cuts.parts, strict=True)])


_NUMBERS = "float32|int32|int64"
_PACKED = "float32|uint8|int8|int16|int32|uint32|int64"
_UNPACKED = "float32|float16|bfloat16|uint8|int8|int16|int32|bool"
_CUT = "float32|uint8|int8|int16|int32|int64"
_MOVED = f"{BITS_4}|{SIZED}"

KERNELS = (
    Kernel("SHAPE", "any -> int32|int64", prepare_shape, (1, 1)),
    Kernel("RANK", "any -> int32", prepare_rank, (1, 1)),
    Kernel("ZEROS_LIKE", f"{_NUMBERS} -> {_NUMBERS}", prepare_zeros_like, (1, 1)),
    Kernel("BITCAST", f"{SIZED} -> {SIZED}", prepare_bitcast, (1, 1)),
    Kernel("RESHAPE", "any any? -> any", prepare_reshape, (1, 1), shape_operands=(1,)),
    Kernel("SQUEEZE", "any -> any", prepare_squeeze, (1, 2)),
    Kernel("EXPAND_DIMS", f"any {INDEX} -> any", prepare_expand_dims, (1, 1), shape_operands=(1,)),
    Kernel("TRANSPOSE", f"{_MOVED} int32 -> {_MOVED}", prepare_transpose, (1, 9), shape_operands=(1,)),
    Kernel("PACK", f"{_PACKED}* -> {_PACKED}", prepare_pack, (1, 5)),
    Kernel("UNPACK", f"{_UNPACKED} -> {_UNPACKED}*", prepare_unpack, (1, 6)),
    Kernel("SPLIT", f"int32 {_CUT} -> {_CUT}*", prepare_split, (1, 5), shape_operands=(0,)),
    Kernel("SPLIT_V", f"{_CUT} {INDEX} int32 -> {_CUT}*", prepare_split_v, (1, 3), shape_operands=(1, 2)),
)
