"""Reductions that XNNPACK takes.

Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode.
"""

from __future__ import annotations

from tflq.engine.kernels.delegation import has_shape, is_quantized
from tflq.engine.kernels.kernel import Node


def takes(node: Node) -> bool:
    """Return whether XNNPACK takes 8-bit codes: at least one axis, quantized operands, an input with elements."""
    x = node.input(0)
    return is_quantized(x) and is_quantized(node.outputs[0]) and has_axes(node) and min(x.shape, default=1) > 0


def has_axes(node: Node) -> bool:
    """Return whether there is at least one axis."""
    x, axes = node.input(0), node.constant(1).reshape(-1)
    return len(axes) > 0 and not (len(axes) == 1 and int(axes[0]) == 0 and not x.shape)


def takes_floats(node: Node) -> bool:
    """Return whether there is an axis, and the operand is not empty."""
    return has_axes(node) and has_shape(node.input(0), 1)
