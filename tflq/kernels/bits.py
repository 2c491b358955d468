"""Operators on the bits of two integers: what their kernel files share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.kernels.kernel import Array, Node, Prepared
from tflq.kernels.operands import require_same_type

BITS_TYPES = "int8|uint8|int16|uint16|int32|uint32"
MAX_BROADCAST_RANK = 4


def prepare_bits(node: Node, evaluate: Callable[[None, Array, Array], Array]) -> Prepared:
    """Shapes are equal, or broadcast up to four dimensions. Source: BroadcastBinaryFunction4DSlow."""
    a, b = node.input(0), node.input(1)
    require_same_type(node, a, b, node.outputs[0])
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        node.refuse("shapes do not broadcast", b, expected=list(a.shape), got=list(b.shape))
    fits = a.shape == b.shape or len(shape) <= MAX_BROADCAST_RANK
    node.check(fits, "dimensions to broadcast", expected=f"up to {MAX_BROADCAST_RANK}", got=len(shape))
    return Prepared((shape,), None, evaluate)
