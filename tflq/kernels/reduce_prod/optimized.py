"""REDUCE_PROD of quantized integers: products over axes of size 1 alone are copies, without any scaling.

Operands, options and refusals: tflq/kernels/reduce_prod/reference.py.
Source: LiteRT 2.3 optimized/reduce.h QuantizedReduceProd, ReduceIsCopy.
"""

from __future__ import annotations

from tflq.kernels.families.reduction import AXES, reduced_axes
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, Shape, valid
from tflq.kernels.reduce_prod.reference import prepare_integer
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic

TYPES = ("int8", "int16")


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Whether something is multiplied at all follows from the shapes."""
    prepared = prepare_integer(node, arithmetic)
    reduced = reduced_axes(node)
    return prepared if reduced.count > 1 else Prepared(prepared.shapes, reduced.shape, eval_copy)


def eval_copy(shape: Shape, x: Array, axes: Array) -> Array:
    """Source: ReduceIsCopy. No rounding."""
    return x.reshape(shape)


KERNELS = valid(opt("litert-2.3"), *(Kernel("REDUCE_PROD", f"{t} int32 -> {t}", prepare, (1, 2), AXES) for t in TYPES))
