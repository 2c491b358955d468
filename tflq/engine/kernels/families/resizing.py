"""Images in another size: what the resize operators share."""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Node, Shape
from tflq.engine.kernels.operands import integers, require_rank
from tflq.errors import LimitError

#: Rows or columns of an image: beyond it float32 positions are not distinct, and the tables of positions get large.
LARGEST = 1 << 24


def resized_shape(node: Node, smallest: int) -> Shape:
    """Return (N, height, width, C), with height and width from input 1, at least `smallest`."""
    x, size = node.input(0), node.input(1)
    require_rank(node, x, 4)
    node.check(size.shape == (2,), "shape of the size", size, expected=[2], got=list(size.shape))
    height, width = integers(node, 1)
    for value in (height, width):
        node.check(value >= smallest, "size", size, expected=f"at least {smallest}", got=value)
        if value > LARGEST:
            raise LimitError(f"operator {node.index} {node.op}: size {value} is beyond the limit of {LARGEST}")
    return (x.shape[0], height, width, x.shape[3])


def ratio(size: int, new_size: int, align: bool) -> np.float32:
    """Return input steps per output step, one float32 division; `align` puts the last positions onto each other."""
    if align and new_size > 1:
        return np.float32(size - 1) / np.float32(new_size - 1)
    return np.float32(size) / np.float32(new_size)
