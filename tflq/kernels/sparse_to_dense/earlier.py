"""SPARSE_TO_DENSE: one value for several positions is refused.

Operands: tflq/kernels/sparse_to_dense/reference.py.
Source: TensorFlow 2.14 lite/kernels/sparse_to_dense.cc CheckDimensionsMatch.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tflq.kernels.kernel import Node, Prepared, valid
from tflq.kernels.sparse_to_dense import reference as sparse_to_dense
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse one value for several positions."""
    indices, values = node.input(0), node.input(2)
    count = prod(indices.shape[:1])
    node.check(bool(values.shape) or count == 1, "number of values", values, expected=count, got="a scalar")
    return sparse_to_dense.prepare(node, arithmetic)


KERNELS = valid(tflite(until="tflite-2.14"), *(replace(row, prepare=prepare) for row in sparse_to_dense.KERNELS))
