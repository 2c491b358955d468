"""REDUCE_MAX and REDUCE_MIN of 8-bit codes by XNNPACK: codes move, regardless of the output's scale.

Operands, options and refusals: tflq/engine/kernels/reduce_max_min/reference.py, except that scales may differ.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode; XNNPACK's rminmax kernels of qs8 and qu8.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.engine.kernels.delegation import delegate
from tflq.engine.kernels.families.reduction import AXES
from tflq.engine.kernels.families.xnnpack_reductions import takes
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.reduce_max_min import reference
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic


def moving(row: Kernel) -> Kernel:
    """Return the row with an output that is read as quantized like its input."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        (y,) = node.outputs
        alike = replace(node, outputs=(replace(y, quantization=node.input(0).quantization),))
        return row.prepare(alike, arithmetic)

    return Kernel(row.op, row.types, prepare, row.versions, AXES)


KERNELS = (
    *valid(
        xnnpack("litert-2.1"),
        *(
            delegate(moving(row), takes)
            for row in (*reference.REDUCE_MAX, *reference.REDUCE_MIN)
            if row.types in ("uint8 int32 -> uint8", "int8 int32 -> int8")
        ),
    ),
)
