"""REDUCE_PROD of quantized integers up to 2.14: over axes of size 1 alone it reads memory that nothing has written.

Operands, options and other refusals: tflq/kernels/reduce_prod/reference.py.
Source: TensorFlow 2.14 optimized/reduce.h QuantizedReduceProd.
"""

from __future__ import annotations

from tflq.errors import UndefinedResultError
from tflq.kernels.families.reduction import AXES, reduced_axes
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.reduce_prod.optimized import TYPES
from tflq.kernels.reduce_prod.reference import prepare_integer
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refused where nothing is multiplied."""
    if node.input(0).is_quantized and reduced_axes(node).count == 1:
        raise UndefinedResultError("QuantizedReduceProd", "nothing to multiply: temporary memory is read unwritten")
    return prepare_integer(node, arithmetic)


KERNELS = valid(
    opt(until="litert-2.0"), *(Kernel("REDUCE_PROD", f"{t} int32 -> {t}", prepare, (1, 2), AXES) for t in TYPES)
)
