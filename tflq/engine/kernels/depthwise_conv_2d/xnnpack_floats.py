"""DEPTHWISE_CONV_2D of float32 by XNNPACK. Operands and options: tflq/engine/kernels/depthwise_conv_2d/reference.py.

Chains of fused multiply-adds: tflq/engine/kernels/families/fused_convolution.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitDepthwiseConv2DNode, CheckDepthwiseConvolutionParams.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.kernels.delegation import (
    UNCLAIMED,
    delegate,
    has_recorded_image,
    has_shape,
    is_static,
    of_no_narrower_bias,
    of_one_width,
)
from tflq.engine.kernels.depthwise_conv_2d import reference
from tflq.engine.kernels.depthwise_conv_2d.shapes import shapes
from tflq.engine.kernels.families.fused_convolution import OpData, convolve
from tflq.engine.kernels.families.fused_products import open_range
from tflq.engine.kernels.families.negative_padding import unread
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, promising, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def takes(node: Node) -> bool:
    """Return whether filter and bias are constant, the depth multiplier fits and XNNPACK has the activation."""
    x, w, bias = node.input(0), node.input(1), node.optional(2)
    times = int(node.options["depth_multiplier"])
    return (
        bias is not None
        and is_static(w)
        and is_static(bias)
        and has_shape(x, 4)
        and has_shape(w, 4)
        and has_shape(bias, 1, 1)
        and has_recorded_image(node)
        and times > 0
        and w.shape[3] == times * x.shape[3]
        and int(node.options["fused_activation_function"]) <= 3
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry alone."""
    at, shape, times = shapes(node)
    return Prepared((shape,), OpData(at, shape, shape[3] // times, open_range(node)), evaluate)


def evaluate(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Rounding: one for each product and sum, from the bias on."""
    return convolve(data, x, np.asarray(w).transpose(3, 1, 2, 0), np.ascontiguousarray(bias))


_ROW = delegate(Kernel("DEPTHWISE_CONV_2D", "float32 float32 float32 -> float32", prepare, (1, 6)), takes)
_REFERENCE = Kernel("DEPTHWISE_CONV_2D", _ROW.types, reference.prepare_float, (1, 6))
_ALIKE = of_one_width(takes)

KERNELS = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), replace(_ROW, takes=of_no_narrower_bias(takes))),
    *valid(xnnpack("litert-2.1", "litert-2.1", cpu="x86-64"), unread(_ROW, _ALIKE)),
    *valid(xnnpack("litert-1.4", "litert-2.0"), *promising(UNCLAIMED, (unread(_REFERENCE, _ALIKE),))),
    *valid(xnnpack(until="litert-1.0"), *promising(UNCLAIMED, (unread(_REFERENCE, takes),))),
)
