"""REVERSE_V2: turn dimensions around.

| operand | shape              | types                                                    | quantization |
|---------|--------------------|----------------------------------------------------------|--------------|
| x       | up to 8 dimensions | float32, float16, bfloat16, uint8, int8, int16, int32,   | passed by    |
|         |                    | int64, bool                                              |              |
| axes    | (n), n >= 1        | int32                                                    |              |
| y       | as x               | as x                                                     | passed by    |

The axes, negative ones counted from the back, must follow one another without a gap. Up to 2.14 only the first counts.
Source: LiteRT 2.3, reverse.cc Prepare, Eval; reference/reverse.h Reverse. TensorFlow 2.14, reverse.cc Eval.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.notes import Fault
from tflq.engine.kernels.operands import axis_within, integers, require_rank, require_same_type
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Sort the axes; refuse none at all, which is undefined in the source."""
    x, operand = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, operand, 1)
    require_rank(node, x, 0, 8)
    axes = tuple(sorted(axis_within(node, axis, len(x.shape)) for axis in integers(node, 1)))
    node.check(bool(axes), "number of axes", operand, expected="at least 1", got=0)
    follow = axes == tuple(range(axes[0], axes[0] + len(axes)))
    node.check(follow, "axes", operand, expected="one after the other", got=list(axes))
    return Prepared((x.shape,), axes, eval_reverse)


def eval_reverse(axes: tuple[int, ...], x: Array, _: Array) -> Array:
    """Source: reference_ops::Reverse."""
    return np.flip(x, axes).copy()


_X = "float32|float16|bfloat16|uint8|int8|int16|int32|int64|bool"
ROWS = (Kernel("REVERSE_V2", f"{_X} int32 -> {_X}", prepare, (1, 4), shape_operands=(1,)),)


def prepare_first_axis(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the first axis only; the release ignores further ones."""
    x, operand = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, operand, 1)
    require_rank(node, x, 1, 8)
    axes = integers(node, 1)
    node.check(len(axes) > 0, "number of axes", operand, expected="at least 1", got=0)
    return Prepared((x.shape,), (axis_within(node, axes[0], len(x.shape)),), eval_reverse)


KERNELS = (*ROWS, *valid(tflite(until="tflite-2.14"), *(replace(row, prepare=prepare_first_axis) for row in ROWS)))

FAULTS = (
    Fault(
        "REVERSE_V2",
        ("float32 int32 -> float32", "uint8 int32 -> uint8", "int8 int32 -> int8", "int16 int32 -> int16"),
        "up to 2.14",
        "of several axes only the first is turned around",
        "reverse.cc Eval",
        (tflite(until="tflite-2.14"),),
    ),
)
