"""DEQUANTIZE of 8-bit codes by XNNPACK: (x - zero point) * scale, as the reference has it.

Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode, and DequantizeInt8 for constants.
"""

from __future__ import annotations

from tflq.kernels.delegation import delegate, has_shape, is_quantized
from tflq.kernels.dequantize.reference import prepare_dequantize
from tflq.kernels.kernel import Kernel, Node, valid
from tflq.kernels.validity import xnnpack


def takes(node: Node) -> bool:
    """Return whether there is one scale."""
    return is_quantized(node.input(0)) and has_shape(node.input(0))


KERNELS = valid(xnnpack(), delegate(Kernel("DEQUANTIZE", "int8|uint8 -> float32", prepare_dequantize, (1, 9)), takes))
