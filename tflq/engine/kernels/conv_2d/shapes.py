"""Shapes of CONV_2D, checked. Operands: tflq/engine/kernels/conv_2d/reference.py."""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.geometry.windows import Window, window
from tflq.engine.kernels.kernel import Node, Shape


def shapes(node: Node) -> tuple[Window, Shape, int]:
    """Return the window, the shape of the output and the number of groups, checked."""
    x, w, bias = node.input(0), node.input(1), node.input(2)
    for operand in (x, w):
        node.check(len(operand.shape) == 4, "rank", operand, expected=4, got=len(operand.shape))
    node.check(min(x.shape[1:]) > 0, "empty image", x, got=x.shape)
    node.check(min(w.shape) > 0, "empty filter", w, got=w.shape)
    node.check(
        x.shape[3] % w.shape[3] == 0, "input channels", x, expected=f"a multiple of {w.shape[3]}", got=x.shape[3]
    )
    groups = x.shape[3] // w.shape[3]
    filters = w.shape[0]
    node.check(filters % groups == 0, "output channels", w, expected=f"a multiple of {groups} groups", got=filters)
    size = int(np.prod(bias.shape))
    node.check(size == filters, "bias length", bias, expected=filters, got=size)
    at = window(node, x.shape, (w.shape[1], w.shape[2]))
    return at, (x.shape[0], at.out_h, at.out_w, filters), groups
