"""DEQUANTIZE of 8-bit codes by XNNPACK: (x - zero point) * scale, as the reference has it.

Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode, and DequantizeInt8 for constants.
"""

from __future__ import annotations

from tflq.kernels.kernel import Kernel, Node
from tflq.kernels.reference.dequantize import prepare_dequantize
from tflq.kernels.xnnpack.delegation import Delegate, has_shape, is_quantized


def takes(node: Node) -> bool:
    """One scale."""
    return is_quantized(node.input(0)) and has_shape(node.input(0))


DELEGATES = (Delegate(Kernel("DEQUANTIZE", "int8|uint8 -> float32", prepare_dequantize, (1, 9)), takes),)
