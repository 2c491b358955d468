"""BITCAST: the same bytes as another type.

| operand | shape                                        | types                  |
|---------|----------------------------------------------|------------------------|
| x       | any                                          | every 8 to 64 bit type |
| y       | x's; split (one more dimension) or joined    | every 8 to 64 bit type |
|         | (the last one gone) where widths differ      |                        |

Source: LiteRT 2.3, bitcast.cc CalculateShape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.element_types import SIZED
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import CARRIER
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class OpData:
    """The output's element type and shape."""

    dtype: np.dtype[np.generic]
    shape: Shape


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
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
    return Prepared((shape,), OpData(target, shape), eval_bitcast)


def eval_bitcast(data: OpData, x: Array) -> Array:
    """Source: a memcpy. Little endian, as the file is."""
    return np.ascontiguousarray(x).reshape(-1).view(data.dtype).reshape(data.shape)


KERNELS = (Kernel("BITCAST", f"{SIZED} -> {SIZED}", prepare, (1, 1)),)
