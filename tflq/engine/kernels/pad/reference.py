"""PAD, PADV2: surround with a constant. MIRROR_PAD: with a mirror image. STABLEHLO_PAD: and between the elements.

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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from tflq.engine.kernels.families.element_types import INDEX, SIZED
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.geometry.interior_padding import Spread, move_apart, spread
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape, valid
from tflq.engine.kernels.operands import (
    integers,
    integers_option,
    require_rank,
    require_same_quantization,
    require_same_type,
    require_size,
    require_zero_point_zero,
)
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.model.ir.schema import enum
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
    return prepare(replace(node, inputs=(node.inputs[0], read, *node.inputs[2:])), arithmetic)


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


def eval_spread(data: Spread, x: Array, value: Array) -> Array:
    """Source: PadData::Apply. Nothing is rounded."""
    return move_apart(data, x, value.reshape(()))


KERNELS = (
    *ROWS,
    *valid(tflite(until="tflite-2.13"), *(replace(row, prepare=prepare_read_as_int32) for row in ROWS)),
    Kernel("MIRROR_PAD", f"{SIZED} {INDEX} -> {SIZED}", prepare_mirror, (1, 3), shape_operands=(1,)),
    Kernel("STABLEHLO_PAD", f"{SIZED} {SIZED} -> {SIZED}", prepare_spread, (1, 1)),
)
