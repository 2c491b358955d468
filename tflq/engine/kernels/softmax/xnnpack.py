"""SOFTMAX of float32 by XNNPACK on x86-64. Data sheet: tflq/engine/kernels/softmax/reference.py.

The arithmetic: tflq/engine/kernels/families/xnnpack_softmax.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitSoftmaxNode.
"""

from __future__ import annotations

from tflq.engine.kernels.delegation import delegate, has_shape
from tflq.engine.kernels.families.xnnpack_softmax import softmax
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def takes(node: Node) -> bool:
    """Return whether beta is 1 and the operand is not empty; no shape need be recorded."""
    x = node.input(0)
    return float(node.options["beta"]) == 1.0 and has_shape(x) and len(x.shape) > 0


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the number of lanes."""
    return Prepared((node.input(0).shape,), arithmetic.xnnpack_lanes, evaluate)


def evaluate(lanes: int, x: Array) -> Array:
    """Rounding: float32, products and sums of the polynomial fused. Subnormal numbers are zeros."""
    return softmax(x, lanes)


KERNELS = valid(
    xnnpack("litert-2.1", cpu="x86-64"), delegate(Kernel("SOFTMAX", "float32 -> float32", prepare, (1, 3)), takes)
)
