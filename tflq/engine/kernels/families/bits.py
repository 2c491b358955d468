"""Operators on the bits of two integers: what their kernel files share."""

from __future__ import annotations

from collections.abc import Callable

from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Node, Prepared
from tflq.engine.kernels.operands import require_same_type
from tflq.typing import Array

BITS_TYPES = "int8|uint8|int16|uint16|int32|uint32"


def prepare_bits(node: Node, evaluate: Callable[[None, Array, Array], Array]) -> Prepared:
    """Prepare without constants. Source: BroadcastBinaryFunction4DSlow, which takes more than four dimensions."""
    a, b = node.input(0), node.input(1)
    require_same_type(node, a, b, node.outputs[0])
    return Prepared((broadcast_shape(node, a, b),), None, evaluate)
