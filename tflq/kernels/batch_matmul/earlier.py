"""BATCH_MATMUL with an adjoint x whose matrices share one y: dimensions are folded as if x were not adjoint. Refused.

Operands: tflq/kernels/batch_matmul/reference.py.
Source: TensorFlow 2.14 reference/batch_matmul.h BatchMatMul; later releases do not fold there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflq.errors import UndefinedResultError
from tflq.kernels.batch_matmul import reference_hybrid
from tflq.kernels.batch_matmul.reference import KERNELS as REFERENCE
from tflq.kernels.families.hybrid import UNCLAIMED_2_14
from tflq.kernels.kernel import Node, Prepared, promising, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic

Prepare = Callable[[Node, Arithmetic], Prepared]


def unfolded(prepare: Prepare) -> Prepare:
    """`prepare` for operands that are not folded wrongly."""

    def checked(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = node.input(0).shape[:-2], node.input(1).shape[:-2]
        if node.options["adj_x"] and x and y and y[-1] == 1 and x[-1] > 1:
            raise UndefinedResultError(node.op, "matrices of an adjoint x are folded into rows")
        return prepare(node, arithmetic)

    return checked


KERNELS = (
    *valid(tflite(until="litert-2.0"), *(replace(row, prepare=unfolded(row.prepare)) for row in REFERENCE)),
    *valid(tflite(until="tflite-2.14"), *promising(UNCLAIMED_2_14, reference_hybrid.KERNELS)),
)
