"""BATCH_MATMUL by XNNPACK. Operands and options: tflq/engine/kernels/batch_matmul.py, hybrid.py.

int8: the reference's sums, scaled by a float32 multiplier; empty operands are refused. LiteRT 2.0 takes every zero
point of y and ignores it.
Floats and int8 matrices: rows quantized asymmetrically, regardless of the option. Refused: matrices that are computed,
whose codes the original reads before they are there; zero points of matrices; empty operands.
Source: LiteRT 2.0 and 2.3 xnnpack_delegate.cc VisitBatchMatMulNode; XNNPACK's batch_matrix_multiply_nc_qs8 and
batch_matrix_multiply_nc_qd8_f32_qc8w.

BATCH_MATMUL of float32 by XNNPACK. Operands and options: tflq/engine/kernels/batch_matmul.py.

A chain of fused multiply-adds from 0 on, matrix by matrix. Codes of a matrix are multiplied as they are, and the sum by
their scale (tflq/engine/interpreter/fusions.py).
Source: LiteRT 2.3 xnnpack_delegate.cc VisitBatchMatMulNode; XNNPACK's batch_matrix_multiply_nc_f32, f32-gemm,
f32-qc8w-gemm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.batch_matmul import FloatData, prepare_quantized, shapes, turn
from tflq.engine.kernels.delegation import UNCLAIMED, delegate, has_filter_scales, is_quantized, meeting, needs, ranked
from tflq.engine.kernels.families.ordered import NO_CLAMP, multiply_matrices
from tflq.engine.kernels.families.xnnpack import OpData, Operation, gemm
from tflq.engine.kernels.families.xnnpack import evaluate as scale_floats
from tflq.engine.kernels.kernel import Call, Kernel, Node, Operand, Prepared, Shape, filling, in_turn, promising, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.microkernels import floats
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.dynamic_range import Rescale, quantize_rows_float32
from tflq.engine.numerics.products import PairContraction, accumulators_int32
from tflq.errors import UndefinedResultError
from tflq.typing import Array


def takes(node: Node) -> bool:
    """Return whether each operand has one scale, along dimension 0 except for y, whose zero point is 0."""
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
    """Return the dimension of y that numbers the output's columns."""
    return len(node.input(1).shape) - (2 if node.options["adj_y"] else 1)


def check_sizes(node: Node, *operands: Operand) -> None:
    """Refuse empty dimensions: XNNPACK's operators take none, and the original does not prepare such a model."""
    for operand in operands:
        node.check(min(operand.shape) > 0, "empty, which XNNPACK does not take", operand, got=operand.shape)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; the scale is scale(x) * scale(y) / scale(out), each step in float32."""
    x, y, out = node.input(0), node.input(1), node.outputs[0]
    prepared = prepare_quantized(node, arithmetic)
    check_sizes(node, x, y)
    real = x.scale * y.scale / out.scale
    pipeline = replace(prepared.data.pipeline, stage=gemm(arithmetic, x, y)(real))
    return replace(prepared, data=replace(prepared.data, pipeline=pipeline))


def takes_any_zero_point(node: Node) -> bool:
    """Return whether the node is taken if y's zero point is read as 0."""
    return takes(symmetric(node))


def prepare_as_symmetric(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like later releases, with y's zero point read as 0."""
    return prepare(symmetric(node), arithmetic)


def symmetric(node: Node) -> Node:
    """Return the node with zero points of 0 for y."""
    y = node.input(1)
    if y.quantization is None:
        return node
    plain = replace(y.quantization, zero_point=np.zeros_like(y.quantization.zero_point))
    return node.with_input(1, replace(y, quantization=plain))


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
    """Constants."""

    shape: Shape  # of the output
    adjoint: bool  # of x
    matrices: Array  # (..., K, N), codes as the contraction takes them
    scale: Array  # of the matrices, (..., 1, N), float32
    contraction: PairContraction
    rescale: Rescale


def takes_hybrid(node: Node) -> bool:
    """Return whether y has one scale or several along the columns."""
    return has_filter_scales(node.input(1), columns_of(node))


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Repeat scales over the matrices of y."""
    shape, (adjoint_x, adjoint_y), length = shapes(node)
    x, y = node.input(0), node.input(1)
    check_sizes(node, x, y)
    if y.value is None:
        raise UndefinedResultError(node.op, "the codes of y are read before they are computed")
    assert y.quantization is not None  # takes saw to it
    node.check(int(y.quantization.zero_point[0]) == 0, "zero point", y, expected=0)
    scale, leading = y.quantization.scale, y.shape[:-2]
    count = int(np.prod(leading)) * shape[-1]
    node.check(count % len(scale) == 0, "number of scales", y, expected=f"a divisor of {count}", got=len(scale))
    contraction = PairContraction.of(length, (-255, 255), (-128, 127))
    data = HybridData(
        shape=shape,
        adjoint=adjoint_x,
        matrices=turn(y.value, adjoint_y).astype(contraction.real),
        scale=np.resize(scale, count).reshape(*leading, 1, shape[-1]),
        contraction=contraction,
        rescale=arithmetic.xnnpack_rescale,
    )
    return Prepared((shape,), data, eval_hybrid)


def eval_hybrid(data: HybridData, x: Array, y: Array) -> Array:
    """Rounding: the sum to float32, then as `rescale`."""
    left = np.ascontiguousarray(turn(x, data.adjoint))
    rows = quantize_rows_float32(left.reshape(-1, left.shape[-1]))
    centred = rows.codes.astype(data.contraction.real) - rows.zero_point.astype(data.contraction.real)[:, None]
    sums = accumulators_int32(data.contraction(centred.reshape(left.shape), data.matrices)).astype(np.float32)
    row_scale = rows.scale.reshape(*left.shape[:-1], 1)
    return data.rescale(sums, row_scale, data.scale, np.zeros(1, np.float32)).reshape(data.shape)


_HYBRID = (delegate(Kernel("BATCH_MATMUL", "float32 int8 -> float32", prepare_hybrid, (1, 4)), takes_hybrid),)

_XNNPACK = (
    *valid(xnnpack("litert-2.1"), delegate(Kernel("BATCH_MATMUL", "int8 int8 -> int8", prepare, (1, 4)), takes)),
    *valid(
        xnnpack("litert-2.0", "litert-2.0"),
        delegate(Kernel("BATCH_MATMUL", "int8 int8 -> int8", prepare_as_symmetric, (1, 4)), takes_any_zero_point),
    ),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), *_HYBRID),
    *valid(xnnpack("litert-2.1", cpu="arm64 wasm"), *promising(UNCLAIMED, _HYBRID)),
    *valid(xnnpack("litert-1.0", "litert-2.0"), *promising(UNCLAIMED, _HYBRID)),
)


@meeting(needs(0, ranked(2)), needs(1, ranked(2)))
def takes_xnnpack_floats(node: Node) -> bool:
    """Return whether no operand is empty."""
    return True


def prepare_xnnpack_floats(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry alone."""
    shape, adjoint, _ = shapes(node)
    scale = np.asarray(node.input(1).scale) if node.is_of_codes else None
    return Prepared((shape,), FloatData(shape, adjoint, scale), evaluate)


@filling(lambda data, *_: (data.shape, np.float32))
def evaluate(data: FloatData, out: Array, x: Array, y: Array) -> Call:
    """Rounding: one for each product and sum, in order of k, and one for the scale of codes."""
    multiply = multiply_matrices(out, *data.turned(x, y), floats.fused_tiles_choose(*out.shape[-2:]))
    if data.scale is None:
        return multiply
    return in_turn([multiply, scale_floats.bind(OpData(Operation.MULTIPLY, NO_CLAMP, data.scale), out, out)])


_XNNPACK_FLOATS = valid(
    xnnpack("litert-2.1", cpu="x86-64"),
    replace(
        delegate(
            Kernel("BATCH_MATMUL", "float32 float32 -> float32", prepare_xnnpack_floats, (1, 4)), takes_xnnpack_floats
        ),
        reads_codes=True,
    ),
)

#: The rows of all operators above.
KERNELS = (*_XNNPACK, *_XNNPACK_FLOATS)
