"""REDUCE_MAX and REDUCE_MIN of 8-bit codes by XNNPACK: codes move, whatever the output's scale says.

Operands, options and refusals: tflq/kernels/reference/reduce_max.py, except that scales may differ.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode; XNNPACK's rminmax kernels of qs8 and qu8.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.families.reduction import AXES
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.kernels.reference import reduce_max, reduce_min
from tflq.kernels.xnnpack.delegation import Delegate
from tflq.kernels.xnnpack.mean import takes
from tflq.numerics.arithmetic import Arithmetic


def moving(row: Kernel) -> Kernel:
    """The row, which reads its output as quantized like its input."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        (y,) = node.outputs
        alike = replace(node, outputs=(replace(y, quantization=node.input(0).quantization),))
        return row.prepare(alike, arithmetic)

    return Kernel(row.op, row.types, prepare, row.versions, AXES)


DELEGATES = tuple(
    Delegate(moving(row), takes)
    for row in (*reduce_max.KERNELS, *reduce_min.KERNELS)
    if row.types in ("uint8 int32 -> uint8", "int8 int32 -> int8")
)
