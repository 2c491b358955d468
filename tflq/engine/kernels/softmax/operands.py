"""Operands of SOFTMAX, checked. Data sheet: tflq/engine/kernels/softmax/reference.py."""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.kernel import Node, Operand
from tflq.model.ir import TensorType


def check_8bit(node: Node) -> tuple[Operand, Operand]:
    """Return input and output of the 8-bit forms, checked."""
    x, y = operands(node)
    if x.type == y.type == TensorType.INT8:
        check_output(node, y, 1 / 256, -128)
    return x, y


def operands(node: Node) -> tuple[Operand, Operand]:
    """Return input and output; refuse a scalar."""
    x, y = node.input(0), node.outputs[0]
    node.check(len(x.shape) >= 1, "must have at least one dimension", x, got=list(x.shape))
    return x, y


def check_output(node: Node, y: Operand, scale: float, zero_point: int) -> None:
    """Refuse an output of another zero point, or of a scale that is not within 0.1 %."""
    node.check(y.zero_point == zero_point, "zero point", y, expected=zero_point, got=y.zero_point)
    near = bool(abs(y.scale - np.float32(scale)) <= np.float32(0.001) * np.float32(scale))
    node.check(near, "scale", y, expected=scale, got=y.scale)
