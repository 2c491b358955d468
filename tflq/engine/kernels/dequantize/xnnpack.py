"""DEQUANTIZE of 8-bit codes by XNNPACK: (x - zero point) * scale, as the reference has it.

The delegate never passes int8 constants on to XNNPACK: it unpacks them with the optimized kernel, or leaves them to it.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode, PrepareOpsToDelegate; quantization_util.cc DequantizeInt8.
"""

from __future__ import annotations

from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized, is_static
from tflq.engine.kernels.dequantize.reference import prepare_dequantize
from tflq.engine.kernels.kernel import Kernel, Node, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.model.ir import TensorType


def takes(node: Node) -> bool:
    """Return whether there is one scale, and the operand is no int8 constant."""
    x = node.input(0)
    return is_quantized(x) and has_shape(x) and not (x.type == TensorType.INT8 and is_static(x))


KERNELS = valid(xnnpack(), delegate(Kernel("DEQUANTIZE", "int8|uint8 -> float32", prepare_dequantize, (1, 9)), takes))
