"""BATCH_MATMUL: matrix products over leading dimensions that broadcast.

| operand | shape                     | types                | quantization                     |
|---------|---------------------------|----------------------|----------------------------------|
| x       | ..., R, K (adj_x: K, R)   | float32, int8, int16 | per tensor; int16: zero point 0  |
| y       | ..., K, N (adj_y: N, K)   | as x; int8 for int16 | per tensor; int16: zero point 0  |
| out     | ..., R, N                 | as x; int32 for int8 | per tensor; int16: zero point 0  |

Ranks 2 to 5. Options: adj_x, adj_y. An int32 output holds products of raw codes: zero points are ignored. Float x with
int8 y: tflq/engine/kernels/batch_matmul/hybrid.py; its results up to 2.14 are not claimed.
Refused: up to LiteRT 2.0 an adjoint x whose matrices share one y, whose dimensions are folded as if x were not adjoint;
up to 2.5 int32 outputs, of which 8-bit codes fill the first quarter.
Source: LiteRT 2.3, batch_matmul.cc Prepare, Eval; reference/batch_matmul.h BatchMatMul. TensorFlow 2.14,
reference/batch_matmul.h BatchMatMul. TensorFlow 2.5, batch_matmul.cc EvalQuantized.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from tflq.engine.kernels.batch_matmul import hybrid
from tflq.engine.kernels.batch_matmul.shapes import shapes
from tflq.engine.kernels.families.contraction import code_span, per_tensor_multiplier
from tflq.engine.kernels.families.hybrid import UNCLAIMED_2_14
from tflq.engine.kernels.families.legacy_scales import one_scale
from tflq.engine.kernels.families.ordered_products import OrderedProduct
from tflq.engine.kernels.families.ordered_sums import multiply
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, promising, valid
from tflq.engine.kernels.validity import tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp, ZeroPoint
from tflq.engine.numerics.contract import PairContraction, accumulators_int32
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Rows from which on it pays to lay out a matrix for tiles.
_ROWS_TO_PACK = 16
_OPEN = NumberClamp(-np.float32(np.inf), np.float32(np.inf))


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the integer forms."""

    shape: Shape  # of the output
    adjoint: tuple[bool, bool]  # of x, of y
    zero_points: tuple[ZeroPoint, ZeroPoint]  # LSB of x, of y
    contraction: PairContraction
    pipeline: OutputPipeline | None  # None: sums are the output


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of the float form."""

    shape: Shape  # of the output
    adjoint: tuple[bool, bool]  # of x, of y


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Accumulate 16-bit operands in int64."""
    shape, adjoint, length = shapes(node)
    x, y, out = node.input(0), node.input(1), node.outputs[0]
    dtype = CARRIER[out.type]
    wide = x.type == TensorType.INT16
    if wide:
        for operand in (x, y, out):
            node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    real = per_tensor_multiplier(node, arithmetic, x, y, None, out)
    stage = (arithmetic.requantize_wide if wide else arithmetic.requantize)(real)
    data = OpData(
        shape=shape,
        adjoint=adjoint,
        zero_points=(x.zero_point, y.zero_point),
        contraction=PairContraction.of(length, code_span(x), code_span(y)),
        pipeline=OutputPipeline(stage, out.zero_point, type_range(dtype), dtype),
    )
    return Prepared((shape,), data, eval_quantized)


def prepare_sums(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare sums of products of codes, without scales and zero points."""
    shape, adjoint, length = shapes(node)
    codes = type_range(np.int8)
    data = OpData(shape, adjoint, (ZeroPoint(0), ZeroPoint(0)), PairContraction.of(length, codes, codes), None)
    return Prepared((shape,), data, eval_sums)


def _operand(codes: Array, adjoint: bool, zero_point: int, real: np.dtype[np.generic]) -> Array:
    values: Array = codes.astype(real) - real.type(zero_point)  # exact: at most 17 bits
    return np.swapaxes(values, -1, -2) if adjoint else values


def eval_sums(data: OpData, x: Array, y: Array) -> Array:
    """Source: BatchMatMul (int8, int8, int32). Overflow: the accumulator wraps."""
    return accumulators_int32(sums(data, x, y)).reshape(data.shape)


def sums(data: OpData, x: Array, y: Array) -> Array:
    """Return the true sums of products of centred codes."""
    real = data.contraction.real
    (at_x, at_y), (zero_x, zero_y) = data.adjoint, data.zero_points
    return data.contraction(_operand(x, at_x, zero_x, real), _operand(y, at_y, zero_y, real))


def eval_quantized(data: OpData, x: Array, y: Array) -> Array:
    """Source: BatchMatMul (quantized). Rounding: by the stage. Overflow: an int32 accumulator wraps."""
    assert data.pipeline is not None  # eval_sums is the form without one
    return data.pipeline(sums(data, x, y)).reshape(data.shape)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the geometry alone."""
    shape, adjoint, _ = shapes(node)
    return Prepared((shape,), FloatData(shape, adjoint), eval_float)


def eval_float(data: FloatData, x: Array, y: Array) -> Array:
    """Source: BatchMatMul (float). Rounding: product and sum apart, in order of k. No clamp: infinities stay."""
    left = np.ascontiguousarray(x.swapaxes(-1, -2) if data.adjoint[0] else x)
    right = np.ascontiguousarray(y.swapaxes(-1, -2) if data.adjoint[1] else y)
    leading = data.shape[:-2]
    out = np.empty(data.shape, np.float32)
    nothing = np.zeros(data.shape[-1], np.float32)
    lefts, rights = np.broadcast_to(left, leading + left.shape[-2:]), np.broadcast_to(right, leading + right.shape[-2:])
    for index in np.ndindex(*leading):
        rows = lefts[index]
        product = OrderedProduct.of_rows(rights[index], len(rows)) if len(rows) >= _ROWS_TO_PACK else None
        if product is not None:
            product.into(rows[None, None], nothing, _OPEN, out[index])()
        else:
            multiply(rows, rights[index], nothing, *_OPEN, out[index])
    return out


Prepare = Callable[[Node, Arithmetic], Prepared]


def unfold(prepare: Prepare) -> Prepare:
    """Return a prepare that refuses operands whose dimensions the release folds wrongly."""

    def checked(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = node.input(0).shape[:-2], node.input(1).shape[:-2]
        if node.options["adj_x"] and x and y and y[-1] == 1 and x[-1] > 1:
            raise UndefinedResultError(node.op, "matrices of an adjoint x are folded into rows")
        return prepare(node, arithmetic)

    return checked


def refuse_int32(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator."""
    raise UndefinedResultError(node.op, "int32 outputs are written as 8-bit codes, most of them not at all")


_VERSIONS = (1, 4)

ROWS = (
    Kernel("BATCH_MATMUL", "float32 float32 -> float32", prepare_float, _VERSIONS),
    Kernel("BATCH_MATMUL", "int8 int8 -> int8", prepare_quantized, _VERSIONS),
    Kernel("BATCH_MATMUL", "int8 int8 -> int32", prepare_sums, _VERSIONS),
    Kernel("BATCH_MATMUL", "int16 int8|int16 -> int16", prepare_quantized, _VERSIONS),
)
UNFOLDED = tuple(replace(row, prepare=unfold(row.prepare)) for row in ROWS)

#: Up to LiteRT 1.0.
_ONE_SCALE = tuple(replace(row, prepare=one_scale(row.prepare)) for row in hybrid.ROWS)

KERNELS = (
    *ROWS,
    *hybrid.ROWS,
    *valid(tflite(until="litert-2.0"), *UNFOLDED),
    *valid(tflite("litert-1.0", "litert-1.0"), *_ONE_SCALE),
    *valid(tflite(until="tflite-2.14"), *promising(UNCLAIMED_2_14, _ONE_SCALE)),
    *valid(tflite(until="tf-2.5"), replace(ROWS[2], prepare=refuse_int32)),
)
