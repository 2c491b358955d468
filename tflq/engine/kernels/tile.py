"""TILE: repeat along every dimension.

| operand     | shape             | types                          | quantization |
|-------------|-------------------|--------------------------------|--------------|
| x           | any               | every 8 to 64 bit type, string | passed by    |
| multipliers | (rank of x)       | int32, int64                   |              |
| y           | x * multipliers   | as x                           | passed by    |

Source: LiteRT 2.3, tile.cc MultiplyShapeDims, TileOneDimension.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.element_types import INDEX, SIZED
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import integers, require_same_type, require_size
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
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


_X = f"{SIZED}|string"

KERNELS = (Kernel("TILE", f"{_X} {INDEX} -> {_X}", prepare, (1, 3), shape_operands=(1,)),)
