"""PAD, PADV2: surround with a constant.

| operand  | shape              | types                                       | quantization      |
|----------|--------------------|---------------------------------------------|-------------------|
| x        | up to 5 dimensions | float32, float16, bfloat16, uint8, int8,    | per tensor        |
|          |                    | int16, int32, int64, bool                   |                   |
| paddings | (rank of x, 2)     | int32, int64, int16, int8, bool             |                   |
| value    | one element, or    | as x                                        | 8, 16 bits: as y  |
|          | none               |                                             |                   |
| y        | x's plus paddings  | as x                                        | per tensor        |

Without a value, quantized types are padded with the output's zero point and everything else with 0. Signed 8- and
16-bit tensors without scale are plain numbers. PAD and PADV2 are one kernel.
Source: LiteRT 2.3, pad.cc Prepare, EvalInt, Eval; reference/pad.h PadImpl.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.ir import CARRIER, TensorType
from tflq.kernels.filling import Call, filling
from tflq.kernels.kernel import Array, Kernel, Node, Operand, Prepared, Shape
from tflq.kernels.operands import integers, require_rank, require_same_quantization, require_same_type, require_size
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import type_range

MAX_RANK = 5


@dataclass(frozen=True, slots=True)
class OpData:
    """Where the input lies in the output, and what surrounds it where no operand says so."""

    shape: Shape  # of the output
    inside: tuple[slice, ...]  # the input's place in the output
    value: int  # LSB of output; a ZeroPoint where it is the code of 0


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The output's shape; the pad value's quantization must be the output's."""
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
    """(before, after) of every dimension, in elements, none negative."""
    operand = node.input(1)
    expected = (len(x.shape), 2)
    node.check(operand.shape == expected, "shape of paddings", operand, expected=list(expected), got=operand.shape)
    amounts = integers(node, 1)
    require_size(node, operand, amounts)
    return list(zip(amounts[::2], amounts[1::2], strict=True))


def holds_codes(x: Operand) -> bool:
    """Whether the elements stand for real numbers through a scale and a zero point."""
    if x.type in (TensorType.INT8, TensorType.INT16):
        return x.quantization is not None and len(x.quantization.scale) > 0
    return x.type == TensorType.UINT8


def default_value(node: Node, x: Operand, y: Operand) -> int:
    """The code of real 0, or plain 0."""
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


_X = "float32|float16|bfloat16|uint8|int8|int16|int32|int64|bool"
_SIGNATURE = f"{_X} int32|int64|int16|int8|bool {_X}? -> {_X}"

KERNELS = (
    Kernel("PAD", _SIGNATURE, prepare, (1, 6), shape_operands=(1,)),
    Kernel("PADV2", _SIGNATURE, prepare, (1, 6), shape_operands=(1,)),
)
