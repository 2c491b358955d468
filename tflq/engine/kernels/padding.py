"""PAD, PADV2, MIRROR_PAD, DILATE: surround elements, or move them apart.

PAD, PADV2: surround with a constant. MIRROR_PAD: with a mirror image. STABLEHLO_PAD: and between the elements.

| operand  | PAD, PADV2         | MIRROR_PAD        | STABLEHLO_PAD                       | types              |
|----------|--------------------|-------------------|-------------------------------------|--------------------|
| x        | up to 5 dimensions | any               | 1 to 8 dimensions                   | see below          |
| paddings | (rank of x, 2)     | (rank of x, 2)    |                                     | int32, int64; PAD: |
|          |                    |                   |                                     | int16, int8, bool  |
| value    | one element, none  |                   | one element                         | as x               |
| y        | x's plus paddings  | x's plus paddings | low + x + (x - 1) * interior + high | as x               |

PAD takes float32, float16, bfloat16, uint8, int8, int16, int32, int64 and bool, the others every 8 to 64 bit type.
PAD and PADV2 are one kernel. Without a value, quantized types are padded with the output's zero point and everything
else with 0; a value has the output's quantization. Signed 8- and 16-bit tensors without scale are plain numbers. Up to
2.13, paddings are read as 32-bit integers, regardless of their type.
MIRROR_PAD: option mode, REFLECT (the edge element is the mirror) or SYMMETRIC (it is mirrored, too). A padding reaches
at most across the whole input. 8 and 16 bits have one quantization, int16 has zero point 0.
STABLEHLO_PAD: options edge_padding_low, edge_padding_high, interior_padding; negative borders cut. If any size comes
out as 0 or less, all are 0.
Source: LiteRT 2.3, pad.cc Prepare, EvalInt, Eval; reference/pad.h PadImpl; mirror_pad.cc GetPaddedOutputShape,
GetInputDimension; stablehlo_pad.cc. TensorFlow 2.13, pad.cc ResizeOutputTensor, Eval.

PAD, PADV2 of r1.15's reference kernels: below four dimensions, paddings and sizes are aligned to different ends.

The loops run over four dimensions. Missing sizes are put in front, missing paddings behind, so that the padding of
the first dimension goes to the first of the four, which has one element: the output has the right shape, but often
nothing of the input in it. If more elements of the input are asked for than there are, the result is undefined. Among
the optimized kernels, only int8 runs the reference kernel. Source: TensorFlow r1.15 lite/kernels/pad.cc Eval;
reference_ops.h PadImpl.

DILATE: elements moved apart, a value between them.

| operand   | shape                  | types                     |
|-----------|------------------------|---------------------------|
| x         | at least one dimension | all of 8, 16, 32, 64 bits |
| dilations | one per dimension      | int32                     |
| value     | one element            | as x                      |
| y         | (x - 1) * dilation + 1 | as x                      |

Source: LiteRT 2.3, dilate.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from tflq.engine.kernels.checks import (
    integers,
    integers_option,
    require_rank,
    require_same_quantization,
    require_same_type,
    require_size,
    require_zero_point_zero,
)
from tflq.engine.kernels.families.movement import INDEX, SIZED
from tflq.engine.kernels.geometry.volumes import DilatedInput, move_apart, spread
from tflq.engine.kernels.kernel import Call, Kernel, Node, Operand, Prepared, Shape, filling, valid
from tflq.engine.kernels.validity import tf1, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.model.ir.model import enum
from tflq.typing import Array

MAX_RANK = 5


@dataclass(frozen=True, slots=True)
class OpData:
    """Position of the input in the output, and the value that surrounds it without an operand for it."""

    shape: Shape  # of the output
    inside: tuple[slice, ...]  # the input's place in the output
    value: int  # LSB of output; a ZeroPoint where it is the code of 0


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the output's shape; the pad value's quantization must be the output's."""
    x, y, value = node.input(0), node.outputs[0], node.optional(2)
    require_same_type(node, x, y)
    require_rank(node, x, 0, MAX_RANK)
    if value is not None:
        require_same_type(node, x, value)
        node.check(np.prod(value.shape) == 1, "number of pad values", value, expected=1, got=list(value.shape))
        if holds_codes(x):
            require_same_quantization(node, y, value)
    pairs = paddings(node, x)
    shape = tuple(size + before + after for size, (before, after) in zip(x.shape, pairs, strict=True))
    inside = tuple(slice(before, before + size) for size, (before, _) in zip(x.shape, pairs, strict=True))
    return Prepared((shape,), OpData(shape, inside, default_value(node, x, y)), eval_pad)


def paddings(node: Node, x: Operand) -> list[tuple[int, int]]:
    """Return (before, after) of every dimension, in elements, none negative."""
    operand = node.input(1)
    expected = (len(x.shape), 2)
    node.check(operand.shape == expected, "shape of paddings", operand, expected=list(expected), got=operand.shape)
    amounts = integers(node, 1)
    require_size(node, operand, amounts)
    return list(zip(amounts[::2], amounts[1::2], strict=True))


def holds_codes(x: Operand) -> bool:
    """Return whether the elements are quantized real numbers."""
    if x.type in (TensorType.INT8, TensorType.INT16):
        return x.quantization is not None and len(x.quantization.scale) > 0
    return x.type == TensorType.UINT8


def default_value(node: Node, x: Operand, y: Operand) -> int:
    """Return the code of real 0, or plain 0."""
    if not holds_codes(x):
        return 0
    low, high = type_range(CARRIER[y.type])
    node.check(low <= y.zero_point <= high, "zero point", y, expected=f"{low} to {high}", got=y.zero_point)
    return y.zero_point


@filling(lambda data, x, *_: (data.shape, x.dtype))
def eval_pad(data: OpData, out: Array, x: Array, paddings: Array, value: Array | None = None) -> Call:
    """Source: reference_ops::PadImpl. Rounding, overflow: none."""
    around, inside = data.value if value is None else value.reshape(()), out[data.inside]
    return partial(_pad, around, x, inside, out)


def _pad(value: int | Array, x: Array, inside: Array, out: Array) -> None:
    out[...] = value
    inside[...] = x


_PADDED = "float32|float16|bfloat16|uint8|int8|int16|int32|int64|bool"
_SIGNATURE = f"{_PADDED} int32|int64|int16|int8|bool {_PADDED}? -> {_PADDED}"

ROWS = (
    Kernel("PAD", _SIGNATURE, prepare, (1, 6), shape_operands=(1,)),
    Kernel("PADV2", _SIGNATURE, prepare, (1, 6), shape_operands=(1,)),
)


def prepare_read_as_int32(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Read the halves of the first 64-bit paddings; refuse narrower ones, which end too soon."""
    paddings = node.input(1)
    if paddings.type == TensorType.INT32:
        return prepare(node, arithmetic)
    if paddings.type != TensorType.INT64:
        raise UndefinedResultError(node.op, f"paddings of {paddings.type.label} are read as int32, beyond their end")
    halves = np.ascontiguousarray(node.constant(1)).view(np.int32).reshape(-1)[: paddings.shape[0] * 2]
    read = replace(paddings, type=TensorType.INT32, value=halves.reshape(paddings.shape))
    return prepare(node.with_input(1, read), arithmetic)


Sources = tuple[tuple[int, Array], ...]  # dimension, and for every output position in it the input position


def prepare_mirror(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute input positions for the dimensions that are padded."""
    x, y = node.input(0), node.outputs[0]
    require_same_type(node, x, y)
    if x.type in (TensorType.UINT8, TensorType.INT8, TensorType.INT16):
        require_same_quantization(node, x, y)
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x)
    mode = int(node.options["mode"])
    node.check(mode in enum("MirrorPadMode").values(), "mode", expected="REFLECT or SYMMETRIC", got=mode)
    edge = 1 if mode == enum("MirrorPadMode")["REFLECT"] else 0
    pairs = paddings(node, x)
    for size, pair in zip(x.shape, pairs, strict=True):
        node.check(max(pair) <= size - edge, "paddings", node.input(1), expected=f"at most {size - edge}", got=pair)
    shape = tuple(size + before + after for size, (before, after) in zip(x.shape, pairs, strict=True))
    sources: Sources = tuple((axis, mirror(x.shape[axis], *pair, edge)) for axis, pair in enumerate(pairs) if any(pair))
    return Prepared((shape,), sources, eval_mirror)


def mirror(size: int, before: int, after: int, edge: int) -> Array:
    """Return input positions in output order; `edge` is 1 if the image leaves out the edge element."""
    inside = np.arange(size)
    left = before + edge - 1 - np.arange(before)
    right = size - 1 - edge - np.arange(after)
    return np.concatenate([left, inside, right])


def eval_mirror(sources: Sources, x: Array, paddings: Array) -> Array:
    """Source: mirror_pad.cc Eval. One dimension after the other."""
    for axis, positions in sources:
        x = x.take(positions, axis)
    return x


def prepare_spread(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry alone."""
    x, value = node.input(0), node.input(1)
    require_same_type(node, x, value, node.outputs[0])
    require_rank(node, x, 1, 8)
    node.check(prod(value.shape) == 1, "number of elements", value, expected=1, got=prod(value.shape))
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (integers_option(node, name) for name in names)
    for name, values in zip(names, (low, high, interior), strict=True):
        node.check(len(values) == len(x.shape), f"length of {name}", expected=len(x.shape), got=len(values))
    node.check(min(interior) >= 0, "interior padding", expected="at least 0", got=list(interior))
    data = spread(x.shape, low, high, tuple(step + 1 for step in interior))
    if min(data.shape) <= 0:
        data = spread((0,) * len(x.shape), (0,) * len(x.shape), (0,) * len(x.shape), (1,) * len(x.shape))
    return Prepared((data.shape,), data, eval_spread)


def eval_spread(data: DilatedInput, x: Array, value: Array) -> Array:
    """Source: PadData::Apply. Nothing is rounded."""
    return move_apart(data, x, value.reshape(()))


_REFERENCE = (
    *ROWS,
    *valid(tflite(until="tflite-2.13"), *(replace(row, prepare=prepare_read_as_int32) for row in ROWS)),
    Kernel("MIRROR_PAD", f"{SIZED} {INDEX} -> {SIZED}", prepare_mirror, (1, 3), shape_operands=(1,)),
    Kernel("STABLEHLO_PAD", f"{SIZED} {SIZED} -> {SIZED}", prepare_spread, (1, 1)),
)


RANK = 4
TYPES = ("float32", "int32", "int64", "uint8", "int8")


@dataclass(frozen=True, slots=True)
class Tf1Data:
    """The four dimensions of the output, and where in them the source finds its input."""

    shape: Shape  # of the output
    extended: Shape  # the same in four dimensions
    inside: tuple[slice, ...]
    value: int  # LSB of output


def prepare_tf1(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Pad four dimensions as later releases do."""
    x = node.input(0)
    node.check(len(x.shape) <= RANK, "rank", x, expected=f"at most {RANK}", got=len(x.shape))
    right = prepare(node, arithmetic)
    if len(x.shape) == RANK:
        return right
    extended = (1,) * (RANK - len(x.shape)) + right.data.shape
    pairs = (*paddings(node, x), *((0, 0),) * (RANK - len(x.shape)))
    inside = tuple(
        slice(before, max(before, size - after)) for size, (before, after) in zip(extended, pairs, strict=True)
    )
    if np.broadcast_to(np.False_, extended)[inside].size > prod(x.shape):
        raise UndefinedResultError("PadImpl", f"{list(x.shape)} padded to {list(right.data.shape)} reads beyond it")
    return Prepared(right.shapes, Tf1Data(right.data.shape, extended, inside, right.data.value), evaluate)


def evaluate(data: Tf1Data, x: Array, paddings: Array, value: Array | None = None) -> Array:
    """Source: reference_ops::PadImpl. Input elements are taken in their order. Rounding, overflow: none."""
    out = np.full(data.extended, data.value if value is None else value.reshape(()), x.dtype)
    place = out[data.inside]
    place[...] = x.reshape(-1)[: place.size].reshape(place.shape)
    return out.reshape(data.shape)


def rows(op: str, types: tuple[str, ...]) -> tuple[Kernel, ...]:
    """Return the rows of one of the two operators."""
    signatures = (f"{t} int32|int64 -> {t}" if op == "PAD" else f"{t} int32|int64 {t}? -> {t}" for t in types)
    return tuple(Kernel(op, signature, prepare_tf1, (1, 2), shape_operands=(1,)) for signature in signatures)


_TF1 = (
    *valid(tf1("ref"), *rows("PAD", TYPES), *rows("PADV2", TYPES)),
    *valid(tf1("opt"), *rows("PAD", ("int8",)), *rows("PADV2", ("int8",))),
)


def prepare_dilate(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry alone."""
    x, dilations, value = (node.input(position) for position in range(3))
    require_same_type(node, x, value, node.outputs[0])
    require_rank(node, dilations, 1)
    steps, rank = integers(node, 1), len(x.shape)
    node.check(rank > 0, "number of dimensions", x, expected="at least 1", got=rank)
    node.check(len(steps) == rank, "number of elements", dilations, expected=rank, got=len(steps))
    node.check(min(steps) >= 1, "dilations", dilations, expected="at least 1", got=list(steps))
    if 0 in x.shape:
        raise UndefinedResultError(node.op, "the source copies an element out of an empty input")
    data = spread(x.shape, (0,) * rank, (0,) * rank, steps)
    return Prepared((data.shape,), data, evaluate_dilate)


def evaluate_dilate(data: DilatedInput, x: Array, _: Array, value: Array) -> Array:
    """Source: DilateImpl. Nothing is rounded."""
    return move_apart(data, x, value.reshape(-1)[0])


_DILATE = (Kernel("DILATE", f"{SIZED} int32 {SIZED} -> {SIZED}", prepare_dilate, (1, 1), shape_operands=(1,)),)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_TF1, *_DILATE)
