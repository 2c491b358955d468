"""TRANSPOSE_CONV of 8-bit codes by XNNPACK in 2.12: weights with a scale for each channel are not taken.

Source: TensorFlow 2.12 xnnpack_delegate.cc VisitTransposeConvNode.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.kernel import Node
from tflq.kernels.xnnpack import transpose_conv
from tflq.kernels.xnnpack.delegation import is_quantized


def takes(node: Node) -> bool:
    """Weights with one scale, and what later releases ask for."""
    return is_quantized(node.input(1)) and transpose_conv.takes(node)


DELEGATES = tuple(replace(delegate, takes=takes) for delegate in transpose_conv.DELEGATES)
