"""What 2.3 was seen to compute otherwise than later releases, and is not modelled: refused.

DIV of int32 goes through float32. STRIDED_SLICE leaves an element where later releases leave none.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import NoReturn

from tflq.errors import UndefinedResultError
from tflq.ir import TensorType
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.reference import div, strided_slice
from tflq.numerics.arithmetic import Arithmetic


def refuse_div(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator."""
    raise UndefinedResultError(node.op, "int32 quotients of 2.3 go through float32, which is not modelled")


def _not_empty(row: Kernel) -> Kernel:
    """`row` that refuses slices without elements."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = row.prepare(node, arithmetic)
        if any(shape is not None and prod(shape) == 0 for shape in prepared.shapes):
            raise UndefinedResultError(node.op, "slices without elements have other shapes in 2.3")
        return prepared

    return replace(row, prepare=prepare)


KERNELS = (
    *(replace(row, prepare=refuse_div) for row in div.KERNELS if row.signature.starts_with(TensorType.INT32)),
    *(_not_empty(row) for row in strided_slice.KERNELS),
)
