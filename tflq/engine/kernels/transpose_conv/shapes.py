"""Shapes of TRANSPOSE_CONV, checked. Operands: tflq/engine/kernels/transpose_conv/reference.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.engine.kernels.geometry.windows import Window, window
from tflq.engine.kernels.kernel import Node, Shape

_STEPS = (1, 2**15 - 1)


def shapes(node: Node) -> tuple[Window, Shape]:
    """Return the window of the convolution that is transposed and the shape of the output, checked."""
    check_operands(node)
    return _fit(node, tuple(int(n) for n in node.constant(0)))


def shapes_of_own_batch(node: Node) -> tuple[Window, Shape]:
    """Return the same; the batch is the input's, and that of the announced shape is not read.

    Source: XNNPACK's delegate, VisitTransposeConvNode.
    """
    check_operands(node)
    return _fit(node, (*node.input(2).shape[:1], *(int(n) for n in node.constant(0)[1:])))


def _fit(node: Node, shape: Shape) -> tuple[Window, Shape]:
    """Return window and shape of the output, if the operands fit that shape."""
    target, w, x = node.input(0), node.input(1), node.input(2)
    fits = len(shape) == 4 and shape[0] == x.shape[0] and shape[3] == w.shape[0] and min(shape[1:3], default=0) > 0
    node.check(fits, "output shape", target, expected=f"({x.shape[0]}, OH, OW, {w.shape[0]})", got=shape)
    at = window(node, shape, (w.shape[1], w.shape[2]))
    node.check((at.out_h, at.out_w) == x.shape[1:3], "image size", x, expected=(at.out_h, at.out_w), got=x.shape[1:3])
    return at, shape


def check_operands(node: Node) -> None:
    """Refuse operands whose shapes do not go together, and steps out of range."""
    output_shape, w, x = node.input(0), node.input(1), node.input(2)
    node.check(len(output_shape.shape) == 1, "rank", output_shape, expected=1, got=len(output_shape.shape))
    for operand in (x, w):
        node.check(len(operand.shape) == 4, "rank", operand, expected=4, got=len(operand.shape))
    node.check(min(x.shape[1:]) > 0, "empty image", x, got=x.shape)
    node.check(min(w.shape[:3]) > 0, "empty filter", w, got=w.shape)
    node.check(x.shape[3] == w.shape[3], "input channels", x, expected=w.shape[3], got=x.shape[3])
    for name in ("stride_h", "stride_w"):
        step = int(node.options[name])
        node.check(_STEPS[0] <= step <= _STEPS[1], name, expected=_STEPS, got=step)
    bias = node.optional(3)
    if bias is not None:
        size = int(np.prod(bias.shape))
        node.check(size == w.shape[0], "bias length", bias, expected=w.shape[0], got=size)


#: Window and output shape of a node
Geometry = Callable[[Node], tuple[Window, Shape]]
