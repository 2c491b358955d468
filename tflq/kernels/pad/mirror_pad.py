"""MIRROR_PAD: surround with a mirror image.

| operand  | shape             | types                       | quantization                    |
|----------|-------------------|-----------------------------|---------------------------------|
| x        | any               | every 8 to 64 bit type      | per tensor; int16: zero point 0 |
| paddings | (rank of x, 2)    | int32, int64                |                                 |
| y        | x's plus paddings | as x                        | 8, 16 bits: as x                |

Options: mode REFLECT (the edge element is the mirror) or SYMMETRIC (it is mirrored too). A padding reaches at most
across the whole input.
Source: LiteRT 2.3, mirror_pad.cc GetPaddedOutputShape, GetInputDimension.
"""

from __future__ import annotations

import numpy as np

from tflq.ir import TensorType
from tflq.ir.schema import enum
from tflq.kernels.families.element_types import INDEX, SIZED
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.operands import require_same_quantization, require_same_type, require_zero_point_zero
from tflq.kernels.pad.pad import paddings
from tflq.numerics.arithmetic import Arithmetic

Sources = tuple[tuple[int, Array], ...]  # dimension, and for every output position in it the input position


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Input positions for the dimensions that are padded."""
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
    sources: Sources = tuple(
        (axis, mirrored(x.shape[axis], *pair, edge)) for axis, pair in enumerate(pairs) if any(pair)
    )
    return Prepared((shape,), sources, eval_mirror)


def mirrored(size: int, before: int, after: int, edge: int) -> Array:
    """Input positions in output order; `edge` is 1 where the edge element itself is left out of the image."""
    inside = np.arange(size)
    left = before + edge - 1 - np.arange(before)
    right = size - 1 - edge - np.arange(after)
    return np.concatenate([left, inside, right])


def eval_mirror(sources: Sources, x: Array, paddings: Array) -> Array:
    """Source: mirror_pad.cc Eval. One dimension after the other."""
    for axis, positions in sources:
        x = x.take(positions, axis)
    return x


KERNELS = (Kernel("MIRROR_PAD", f"{SIZED} {INDEX} -> {SIZED}", prepare, (1, 3), shape_operands=(1,)),)
