"""STRIDED_SLICE in 2.3: a slice without elements is refused, where that release leaves one element."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tflq.errors import UndefinedResultError
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.strided_slice import reference
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


def _not_empty(row: Kernel) -> Kernel:
    """`row` that refuses slices without elements."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = row.prepare(node, arithmetic)
        if any(shape is not None and prod(shape) == 0 for shape in prepared.shapes):
            raise UndefinedResultError(node.op, "slices without elements have other shapes in 2.3")
        return prepared

    return replace(row, prepare=prepare)


KERNELS = valid(opt(until="tf-2.3"), *map(_not_empty, reference.KERNELS))
