"""BATCH_MATMUL, hybrid: rows of floats, quantized on the way, times int8 matrices.

| operand | shape                   | types   | quantization               |
|---------|-------------------------|---------|----------------------------|
| x       | ..., R, K (adj_x: K, R) | float32 | none                       |
| y       | ..., K, N (adj_y: N, K) | int8    | per tensor or along N      |
| out     | ..., R, N               | float32 | none                       |

Ranks 2 to 5. Options: adj_x, adj_y, asymmetric_quantize_inputs. y's zero points are not looked at.
The source finds row scales and sums of y by adding leading indices up instead of counting through them: with one
leading dimension larger than 1 that is right; with more of them rows get other rows' scales. Sums of y are computed
for two leading dimensions only, and in the first run only: a run that would read further is refused, and if y changes
from run to run zero points are taken off with the first y's sums.
Source: LiteRT 2.3, batch_matmul.cc Eval, EvalHybrid; reference/batch_matmul.h BatchMatMul (hybrid).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.batch_matmul.shapes import shapes
from tflq.engine.kernels.families.hybrid import unit_scales
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Session, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.contract import PairContraction, accumulators_int32
from tflq.engine.numerics.dynamic_range import quantize_rows, row_sums
from tflq.engine.numerics.rounding import floats_to_int32
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    shape: Shape  # of the output
    adjoint: tuple[bool, bool]  # of x, of y
    leading: tuple[Shape, Shape]  # three leading dimensions of x and of y, as the source counts them
    scale: Array  # of y: one or N, float32
    contraction: PairContraction
    asymmetric: bool


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Fold leading dimensions as the source folds them."""
    shape, adjoint, length = shapes(node)
    x, y = node.input(0), node.input(1)
    leading = fold(x.shape, y.shape, adjoint[0])
    asymmetric = bool(node.options.get("asymmetric_quantize_inputs", 0))
    computed, read = leading[1][1] * leading[1][2], sum(max(n - 1, 0) for n in leading[1]) + 1
    if asymmetric and read > computed > 0:
        raise UndefinedResultError(node.op, f"sums of {read} matrices are read and {computed} computed")
    data = OpData(
        shape=shape,
        adjoint=adjoint,
        leading=leading,
        scale=np.atleast_1d(unit_scales(node, y, shape[-1])),
        contraction=PairContraction.of(length, (-128, 127), (-128, 127)),
        asymmetric=asymmetric,
    )
    return Prepared((shape,), data, evaluate)


def fold(x: Shape, y: Shape, adjoint: bool) -> tuple[Shape, Shape]:
    """Return three leading dimensions each: if y's last is 1, x's last has become part of its rows."""
    left, right = x[:-2], y[:-2]
    if not adjoint and left and right and right[-1] == 1:
        left, right = left[:-1], right[:-1]
    return (1,) * (3 - len(left)) + left, (1,) * (3 - len(right)) + right


def evaluate(data: OpData, session: Session, x: Array, y: Array) -> Array:
    """Source: BatchMatMul (hybrid). Rounding: sums to float32, less sums of y, truncated, times both scales."""
    left = np.ascontiguousarray(x.swapaxes(-1, -2) if data.adjoint[0] else x)
    right = np.ascontiguousarray(y if data.adjoint[1] else y.swapaxes(-1, -2))  # (..., N, K)
    if not math.prod(data.shape) or not left.shape[-1]:
        return np.zeros(data.shape, np.float32)
    length, columns = left.shape[-1], right.shape[-2]
    rows = quantize_rows(left.reshape(-1, length), data.asymmetric)
    (lead_x, lead_y), lead = data.leading, np.broadcast_shapes(*data.leading)
    real = data.contraction.real
    codes = rows.codes.reshape(*lead_x, -1, length).astype(real)
    weights = right.reshape(*lead_y, columns, length).astype(real)
    totals = accumulators_int32(data.contraction(codes, weights.swapaxes(-1, -2))).astype(np.float32)
    count = codes.shape[-2]
    at = summed_indices(lead, lead_x)[..., None] * count + np.arange(count)
    if data.asymmetric:
        if data not in session.memory:
            session.memory[data] = row_sums(right.reshape(-1, length)).reshape(-1, columns)
        sums_of_rows = session.memory[data][summed_indices(lead, lead_y)]
        zero = rows.zero_point[at].astype(np.float32)
        totals = floats_to_int32(totals - sums_of_rows.astype(np.float32)[..., None, :] * zero[..., None]).astype(
            np.float32
        )
    scale = rows.scale[at][..., None] * data.scale
    return np.asarray(totals * scale + np.float32(0)).reshape(data.shape)


def summed_indices(lead: Shape, own: Shape) -> Array:
    """Return the matrix whose rows the source takes: the sum of leading indices, without those of size 1."""
    indices = np.indices(lead)
    return np.asarray(sum(index * (size > 1) for index, size in zip(indices, own, strict=True)))


ROWS = (Kernel("BATCH_MATMUL", "float32 int8 -> float32", prepare, (1, 4), session=True),)
