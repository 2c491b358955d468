"""Shapes of DEPTHWISE_CONV_2D, checked. Operands: tflq/engine/kernels/depthwise_conv_2d/reference.py."""

from __future__ import annotations

from tflq.engine.kernels.geometry.windows import Window, window
from tflq.engine.kernels.kernel import Node, Shape


def shapes(node: Node) -> tuple[Window, Shape, int]:
    """Return the window, the shape of the output and the output channels an input channel, checked."""
    x, w = node.input(0), node.input(1)
    for operand in (x, w):
        node.check(len(operand.shape) == 4, "rank", operand, expected=4, got=len(operand.shape))
    node.check(min(x.shape[1:]) > 0, "empty image", x, got=x.shape)
    node.check(min(w.shape[1:]) > 0, "empty filter", w, got=w.shape)
    node.check(w.shape[0] == 1, "first dimension", w, expected=1, got=w.shape[0])
    depth, channels = x.shape[3], w.shape[3]
    node.check(channels % depth == 0, "output channels", w, expected=f"a multiple of {depth}", got=channels)
    if len(node.inputs) > 2:
        bias = node.input(2)
        node.check(bias.shape == (channels,), "bias shape", bias, expected=(channels,), got=bias.shape)
    at = window(node, x.shape, (w.shape[1], w.shape[2]))
    return at, (x.shape[0], at.out_h, at.out_w, channels), channels // depth
