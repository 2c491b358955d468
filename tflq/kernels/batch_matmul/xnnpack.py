"""BATCH_MATMUL of int8 codes by XNNPACK: the reference's sums, scaled by a float32 multiplier.

Operands, options and refusals: tflq/kernels/batch_matmul/reference.py. Empty operands are refused where it is taken.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBatchMatMulNode; XNNPACK's batch_matrix_multiply_nc_qs8.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.batch_matmul.reference import prepare_quantized
from tflq.kernels.delegation import delegate, has_filter_scales, is_quantized
from tflq.kernels.families.xnnpack_scaling import gemm
from tflq.kernels.kernel import Kernel, Node, Operand, Prepared, valid
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic


def takes(node: Node) -> bool:
    """One scale for each operand, along dimension 0 but for y, whose zero point is 0."""
    x, y = node.input(0), node.input(1)
    return (
        is_quantized(x)
        and is_quantized(node.outputs[0])
        and has_filter_scales(y, columns_of(node))
        and y.quantization is not None
        and len(y.quantization.scale) == 1
        and y.zero_point == 0
    )


def columns_of(node: Node) -> int:
    """The dimension of y that numbers the output's columns."""
    return len(node.input(1).shape) - (2 if node.options["adj_y"] else 1)


def check_sizes(node: Node, *operands: Operand) -> None:
    """XNNPACK's operators take no empty dimensions, and the original does not prepare a model with one."""
    for operand in operands:
        node.check(min(operand.shape) > 0, "empty, which XNNPACK does not take", operand, got=operand.shape)


def check_products(node: Node, x: Operand, real: np.float32) -> None:
    """Refuse what leaves int32 when it is scaled: vector extensions differ in what becomes of it.

    Source: XNNPACK's qs8 kernels of AVX2 and AVX-512, which clamp scaled sums from above only.
    """
    depth = x.shape[-2 if node.options["adj_x"] else -1]
    largest = depth * LARGEST_PRODUCT * float(real)
    if largest >= WRAPS:
        raise UndefinedResultError(node.op, f"sums scaled by {float(real):g} leave int32")


#: The largest magnitude of a product of two centred int8 codes, of which the second has zero point 0.
LARGEST_PRODUCT = 255 * 128
#: What int32 does not hold.
WRAPS = 2.0**31


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; the scale is scale(x) * scale(y) / scale(out), each step in float32."""
    x, y, out = node.input(0), node.input(1), node.outputs[0]
    prepared = prepare_quantized(node, arithmetic)
    check_sizes(node, x, y)
    real = x.scale * y.scale / out.scale
    check_products(node, x, real)
    pipeline = replace(prepared.data.pipeline, stage=gemm(arithmetic, x)(real))
    return replace(prepared, data=replace(prepared.data, pipeline=pipeline))


KERNELS = valid(xnnpack("litert-2.3"), delegate(Kernel("BATCH_MATMUL", "int8 int8 -> int8", prepare, (1, 4)), takes))
