"""BATCH_MATMUL: matrix products over leading dimensions that broadcast.

Shapes of BATCH_MATMUL, checked.

BATCH_MATMUL, hybrid: rows of floats, quantized on the way, times int8 matrices.

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

| operand | shape                     | types                | quantization                     |
|---------|---------------------------|----------------------|----------------------------------|
| x       | ..., R, K (adj_x: K, R)   | float32, int8, int16 | per tensor; int16: zero point 0  |
| y       | ..., K, N (adj_y: N, K)   | as x; int8 for int16 | per tensor; int16: zero point 0  |
| out     | ..., R, N                 | as x; int32 for int8 | per tensor; int16: zero point 0  |

Ranks 2 to 5. Options: adj_x, adj_y. An int32 output holds products of raw codes: zero points are ignored. Float x
with int8 y; its results up to 2.14 are not claimed. Refused: up to LiteRT 2.0 an adjoint x whose matrices share one
y, whose dimensions are folded as if x were not adjoint; up to 2.5 int32 outputs, of which 8-bit codes fill the first
quarter. Source: LiteRT 2.3, batch_matmul.cc Prepare, Eval; reference/batch_matmul.h BatchMatMul. TensorFlow 2.14,
reference/batch_matmul.h BatchMatMul. TensorFlow 2.5, batch_matmul.cc EvalQuantized.

BATCH_MATMUL of the optimized resolver.

Floats are multiplied as in the reference; up to LiteRT 2.0 they are not claimed. ruy multiplies int8 up to LiteRT 1.4;
later releases multiply as the reference does. From 2.10 to LiteRT 1.2, int8 to int32 takes products of centred codes;
other releases ignore zero points there.
Source: LiteRT 2.3 batch_matmul.cc Eval, Register_BATCH_MATMUL. LiteRT 1.4 and TensorFlow 2.14 batch_matmul.cc
EvalInt8Int8, EvalInt8Int32; optimized/batch_matmul.h BatchMatMul.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.checks import require_zero_point_zero
from tflq.engine.kernels.families.activation import one_scale
from tflq.engine.kernels.families.contraction import code_span, per_tensor_multiplier
from tflq.engine.kernels.families.hybrid import UNCLAIMED_2_14, unit_scales
from tflq.engine.kernels.families.movement import Copying
from tflq.engine.kernels.families.ordered import NO_CLAMP, has_tiles, multiply, multiply_matrices
from tflq.engine.kernels.families.unary import unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import gemm, requantizing
from tflq.engine.kernels.kernel import (
    Call,
    CalledSubgraphs,
    Kernel,
    Node,
    Operand,
    Prepare,
    Prepared,
    Shape,
    by_form,
    filling,
    in_turn,
    promising,
    undefined,
    valid,
)
from tflq.engine.kernels.validity import opt, tflite
from tflq.engine.microkernels import floats
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.dynamic_range import quantize_rows, row_sums
from tflq.engine.numerics.products import PairContraction, accumulators_int32
from tflq.engine.numerics.rounding import floats_to_int32
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


def shapes(node: Node) -> tuple[Shape, tuple[bool, bool], int]:
    """Return the shape of the output, which operands are adjoint, and the inner length, checked."""
    x, y = node.input(0), node.input(1)
    for operand in (x, y):
        rank = len(operand.shape)
        node.check(2 <= rank <= 5, "rank", operand, expected="2 to 5", got=rank)
    adjoint = bool(node.options["adj_x"]), bool(node.options["adj_y"])
    (rows, length), (inner, columns) = _matrix(x.shape, adjoint[0]), _matrix(y.shape, adjoint[1])
    node.check(length == inner, "inner dimension", y, expected=length, got=inner)
    return (*_leading(node, x, y), rows, columns), adjoint, length


def _matrix(shape: Shape, adjoint: bool) -> Shape:
    return (shape[-1], shape[-2]) if adjoint else shape[-2:]


def _leading(node: Node, x: Operand, y: Operand) -> Shape:
    rank = max(len(x.shape), len(y.shape))
    pairs = list(zip((1,) * (rank - len(x.shape)) + x.shape, (1,) * (rank - len(y.shape)) + y.shape, strict=True))[:-2]
    for a, b in pairs:
        node.check(a == b or 1 in (a, b), "leading dimensions do not broadcast", y, expected=x.shape, got=y.shape)
    return tuple(b if a == 1 else a for a, b in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class HybridData:
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
    data = HybridData(
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


def evaluate(data: HybridData, session: CalledSubgraphs, x: Array, y: Array) -> Array:
    """Source: BatchMatMul (hybrid). Rounding: sums to float32, less sums of y, truncated, times both scales."""
    left = np.ascontiguousarray(turn(x, data.adjoint[0]))
    right = np.ascontiguousarray(turn(y, not data.adjoint[1]))  # (..., N, K)
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


HYBRID_ROWS = (Kernel("BATCH_MATMUL", "float32 int8 -> float32", prepare, (1, 4), session=True),)


#: Rows from which on it pays to lay out a matrix for tiles.
_ROWS_TO_PACK = 16


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
    scale: Array | None = None  # real units per LSB, one, if y holds codes

    def turned(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return views of the operands, (..., R, K) and (..., K, N)."""
        return turn(x, self.adjoint[0]), turn(y, self.adjoint[1])


def turn(x: Array, is_adjoint: bool) -> Array:
    """Return matrices, or a view of them that is turned if they are adjoint."""
    return x.swapaxes(-1, -2) if is_adjoint else x


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Accumulate 16-bit operands in int64."""
    shape, adjoint, length = shapes(node)
    x, y, out = node.input(0), node.input(1), node.outputs[0]
    dtype = CARRIER[out.type]
    wide = x.type == TensorType.INT16
    if wide:
        require_zero_point_zero(node, x, y, out)
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
    return turn(values, adjoint)


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


@filling(lambda data, *_: (data.shape, np.float32))
def eval_float(data: FloatData, out: Array, x: Array, y: Array) -> Call:
    """Source: BatchMatMul (float). Rounding: product and sum apart, in order of k. No clamp: infinities stay."""
    left, right = data.turned(x, y)
    if out.shape[-2] >= _ROWS_TO_PACK and out.size and left.shape[-1] and has_tiles():
        return multiply_matrices(out, left, right, floats.choose())
    operands = [v if v.flags.c_contiguous else np.empty(v.shape, np.float32) for v in (left, right)]
    calls: list[Call] = [Copying(v, to) for v, to in zip((left, right), operands, strict=True) if to is not v]
    leading, nothing = out.shape[:-2], np.zeros(out.shape[-1], np.float32)
    lefts, rights = (np.broadcast_to(v, leading + v.shape[-2:]) for v in operands)
    calls += [multiply.bound(lefts[i], rights[i], nothing, *NO_CLAMP, out[i]) for i in np.ndindex(*leading)]
    return in_turn(calls)


def unfold(prepare: Prepare) -> Prepare:
    """Return a prepare that refuses operands whose dimensions the release folds wrongly."""

    def checked(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = node.input(0).shape[:-2], node.input(1).shape[:-2]
        if node.options["adj_x"] and x and y and y[-1] == 1 and x[-1] > 1:
            raise UndefinedResultError(node.op, "matrices of an adjoint x are folded into rows")
        return prepare(node, arithmetic)

    return checked


_VERSIONS = (1, 4)
UNWRITTEN = undefined("int32 outputs are written as 8-bit codes, most of them not at all")

ROWS = (
    Kernel("BATCH_MATMUL", "float32 float32 -> float32", prepare_float, _VERSIONS),
    Kernel("BATCH_MATMUL", "int8 int8 -> int8", prepare_quantized, _VERSIONS),
    Kernel("BATCH_MATMUL", "int8 int8 -> int32", prepare_sums, _VERSIONS),
    Kernel("BATCH_MATMUL", "int16 int8|int16 -> int16", prepare_quantized, _VERSIONS),
)
UNFOLDED = tuple(replace(row, prepare=unfold(row.prepare)) for row in ROWS)

#: Up to LiteRT 1.0.
_ONE_SCALE = tuple(replace(row, prepare=one_scale(row.prepare)) for row in HYBRID_ROWS)

_REFERENCE = (
    *ROWS,
    *HYBRID_ROWS,
    *valid(tflite(until="litert-2.0"), *UNFOLDED),
    *valid(tflite("litert-1.0", "litert-1.0"), *_ONE_SCALE),
    *valid(tflite(until="tflite-2.14"), *promising(UNCLAIMED_2_14, _ONE_SCALE)),
    *valid(tflite(until="tf-2.5"), Kernel("BATCH_MATMUL", "int8 int8 -> int32", UNWRITTEN, _VERSIONS)),
)


def prepare_centred_sums(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without scales."""
    prepared = prepare_sums(node, arithmetic)
    _, _, length = shapes(node)
    x, y = node.input(0), node.input(1)
    contraction = PairContraction.of(length, code_span(x), code_span(y))
    return replace(
        prepared, data=replace(prepared.data, zero_points=(x.zero_point, y.zero_point), contraction=contraction)
    )


_by_ruy = unfold(requantizing(prepare_quantized, gemm))
_FLOATS = unclaimed_floats(ROWS)

_OPTIMIZED = (
    *valid(opt(until="litert-2.0"), *_FLOATS),
    *valid(opt(until="tflite-2.14"), *_FLOATS),
    *by_form(
        "BATCH_MATMUL",
        4,
        {
            "int8 int8 -> int8": {
                opt("litert-1.4", "litert-1.4"): _by_ruy,
                opt(until="litert-1.0"): _by_ruy,
                opt(until="tflite-2.9"): _by_ruy,
            },
            "int8 int8 -> int32": {
                opt("litert-1.4", "litert-1.4"): unfold(prepare_sums),
                opt(until="litert-1.0"): unfold(prepare_centred_sums),
                opt(until="tflite-2.9"): unfold(prepare_sums),
            },
            "int16 int8|int16 -> int16": {
                opt("litert-1.4", "litert-1.4"): unfold(prepare_quantized),
                opt(until="tflite-2.9"): unfold(prepare_quantized),
            },
        },
    ),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_OPTIMIZED)
