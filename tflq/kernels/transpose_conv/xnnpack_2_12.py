"""TRANSPOSE_CONV of 8-bit codes by XNNPACK in 2.12: weights with a scale for each channel are not taken.

Source: TensorFlow 2.12 xnnpack_delegate.cc VisitTransposeConvNode.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.delegation import is_quantized
from tflq.kernels.kernel import Node, valid
from tflq.kernels.transpose_conv import xnnpack as transpose_conv
from tflq.kernels.validity import xnnpack


def takes(node: Node) -> bool:
    """Weights with one scale, and what later releases ask for."""
    return is_quantized(node.input(1)) and transpose_conv.takes(node)


KERNELS = valid(xnnpack(until="tflite-2.14"), *(replace(row, takes=takes) for row in transpose_conv.KERNELS))
