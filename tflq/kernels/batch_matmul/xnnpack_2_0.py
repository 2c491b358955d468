"""BATCH_MATMUL of int8 codes by XNNPACK in LiteRT 2.0: taken whatever the zero point of y is, which is then ignored.

Operands, options and refusals: tflq/kernels/batch_matmul/xnnpack.py.
Source: LiteRT 2.0 xnnpack_delegate.cc VisitBatchMatMulNode; XNNPACK's batch_matrix_multiply_nc_qs8.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.batch_matmul import xnnpack as batch_matmul
from tflq.kernels.delegation import delegate
from tflq.kernels.kernel import Kernel, Node, Operand, Prepared, valid
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic


def takes(node: Node) -> bool:
    """Whether XNNPACK takes the node: later releases' conditions, checked as if y's zero point were 0."""
    return batch_matmul.takes(symmetric(node))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like later releases, with y's zero point read as 0."""
    return batch_matmul.prepare(symmetric(node), arithmetic)


def symmetric(node: Node) -> Node:
    """The node with zero points of 0 for y."""
    y = node.input(1)
    inputs: tuple[Operand | None, ...] = (node.inputs[0], y, *node.inputs[2:])
    if y.quantization is not None:
        plain = replace(y.quantization, zero_point=np.zeros_like(y.quantization.zero_point))
        inputs = (node.inputs[0], replace(y, quantization=plain), *node.inputs[2:])
    return replace(node, inputs=inputs)


KERNELS = valid(
    xnnpack("litert-2.0", "litert-2.0"), delegate(Kernel("BATCH_MATMUL", "int8 int8 -> int8", prepare, (1, 4)), takes)
)
