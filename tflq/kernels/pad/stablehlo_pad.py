"""STABLEHLO_PAD: an array with a border, and places between its elements; negative borders cut.

| operand | shape                                       | types                   |
|---------|---------------------------------------------|-------------------------|
| x       | 1 to 8 dimensions                           | all of 8, 16, 32, 64 bits |
| value   | one element                                 | as x                    |
| y       | low + x + (x - 1) * interior + high         | as x                    |

Options: edge_padding_low, edge_padding_high, interior_padding. Where any size comes out as 0 or less, all are 0.
Source: LiteRT 2.3, stablehlo_pad.cc.
"""

from __future__ import annotations

from math import prod

from tflq.kernels.families.element_types import SIZED
from tflq.kernels.geometry.interior_padding import Spread, move_apart, spread
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.operands import integers_option, require_rank, require_same_type
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Only geometry."""
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
    return Prepared((data.shape,), data, evaluate)


def evaluate(data: Spread, x: Array, value: Array) -> Array:
    """Source: PadData::Apply. Nothing is rounded."""
    return move_apart(data, x, value.reshape(()))


KERNELS = (Kernel("STABLEHLO_PAD", f"{SIZED} {SIZED} -> {SIZED}", prepare, (1, 1)),)
