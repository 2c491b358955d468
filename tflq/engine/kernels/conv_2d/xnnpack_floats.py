"""CONV_2D of float32 by XNNPACK. Operands and options: tflq/engine/kernels/conv_2d/reference.py.

Chains of fused multiply-adds: tflq/engine/kernels/families/fused_convolution.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitConv2DNode.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.conv_2d import reference
from tflq.engine.kernels.conv_2d.shapes import shapes
from tflq.engine.kernels.delegation import (
    UNCLAIMED,
    delegate,
    has_recorded_image,
    has_shape,
    is_static,
    of_no_narrower_bias,
    of_one_width,
)
from tflq.engine.kernels.families.fused_convolution import OpData, convolve
from tflq.engine.kernels.families.fused_products import open_range
from tflq.engine.kernels.families.negative_padding import unread
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, promising, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def takes(node: Node) -> bool:
    """Return whether filter and bias are constant and XNNPACK has the activation."""
    x, w, bias = node.input(0), node.input(1), node.input(2)
    return (
        is_static(w)
        and is_static(bias)
        and has_shape(x, 4)
        and has_shape(w, 4)
        and has_shape(bias, 1, 1)
        and has_recorded_image(node)
        and int(node.options["fused_activation_function"]) <= 3
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the panels of a constant filter."""
    at, shape, groups = shapes(node)
    data, w = OpData(at, shape, groups, open_range(node)), node.input(1).value
    return Prepared((shape,), data if w is None else data.bound(w), evaluate)


def evaluate(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Rounding: one for each product and sum, from the bias on."""
    return convolve(data, x, w, np.ascontiguousarray(bias))


_ROW = delegate(Kernel("CONV_2D", "float32 float32 float32 -> float32", prepare, (1, 8)), takes)
_ALIKE = of_one_width(takes)

KERNELS = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), replace(_ROW, takes=of_no_narrower_bias(takes))),
    *valid(xnnpack("litert-2.1", "litert-2.1", cpu="x86-64"), unread(_ROW, _ALIKE)),
    *valid(xnnpack("litert-1.4", "litert-2.0"), *promising(UNCLAIMED, (unread(reference.ROWS[0], _ALIKE),))),
    *valid(xnnpack(until="litert-1.0"), *promising(UNCLAIMED, (unread(reference.ROWS[0], takes),))),
)
