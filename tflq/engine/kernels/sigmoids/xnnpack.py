"""LOGISTIC and TANH by XNNPACK. Floats: tflq/engine/kernels/families/xnnpack_floats.py.

LOGISTIC of 8-bit codes takes the reference's table, for any scale of the output.

Operands: tflq/engine/kernels/sigmoids/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK's tables of unary operators.
"""

from __future__ import annotations

from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized
from tflq.engine.kernels.families.unary import prepare_tabulated
from tflq.engine.kernels.families.xnnpack_floats import applying
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.sigmoids import reference
from tflq.engine.kernels.sigmoids.reference import sigmoid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics import xnnpack_functions
from tflq.engine.numerics.arithmetic import Arithmetic


def takes(node: Node) -> bool:
    """Return whether each operand has one scale."""
    x = node.input(0)
    return is_quantized(x) and is_quantized(node.outputs[0]) and has_shape(x)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Make a table of 256 codes."""
    return prepare_tabulated(node, sigmoid)


KERNELS = (
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        applying("LOGISTIC", reference.LOGISTIC, lambda _, arithmetic: arithmetic.xnnpack_functions.logistic),
        applying("TANH", reference.TANH, lambda *_: xnnpack_functions.TANH),
    ),
    *valid(
        xnnpack("litert-2.1"),
        *(delegate(Kernel("LOGISTIC", f"{t} -> {t}", prepare, (1, 3)), takes) for t in ("uint8", "int8")),
    ),
)
