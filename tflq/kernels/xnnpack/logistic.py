"""LOGISTIC of 8-bit codes by XNNPACK: the reference's table, for any scale of the output.

Operands: tflq/kernels/reference/logistic.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK's tables of unary operators.
"""

from __future__ import annotations

from tflq.kernels.families.unary import prepare_tabulated
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.reference.logistic import sigmoid
from tflq.kernels.xnnpack.delegation import Delegate, has_shape, is_quantized
from tflq.numerics.arithmetic import Arithmetic


def takes(node: Node) -> bool:
    """One scale for each operand."""
    x = node.input(0)
    return is_quantized(x) and is_quantized(node.outputs[0]) and has_shape(x)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Make a table of 256 codes."""
    return prepare_tabulated(node, sigmoid)


DELEGATES = tuple(Delegate(Kernel("LOGISTIC", f"{t} -> {t}", prepare, (1, 3)), takes) for t in ("uint8", "int8"))
