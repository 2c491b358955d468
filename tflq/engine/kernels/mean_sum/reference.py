"""MEAN and SUM over axes.

| operand | shape                | types                 | quantization                    |
|---------|----------------------|-----------------------|---------------------------------|
| x       | any                  | float32, int32, int64 | none                            |
|         |                      | uint8, int8, int16    | per tensor; int16: zero point 0 |
| axes    | any                  | int32                 |                                 |
| y       | x without, or with 1 | as x                  | per tensor                      |

Options: keep_dims. MEAN over no elements: NaN, or code 0.
SUM reads and writes every quantized type as uint8. For int8 that means codes modulo 256 against the signed zero points;
for int16 half of the output stays unwritten, so that it is refused.

Earlier releases, in both resolvers:
- MEAN to 2.12: divides codes as they are if both quantizations are equal, and otherwise rescales in float32. Images: to
  2.9, signed types are rescaled and then divided, and uint8 runs the vector code; 2.5 cuts off that code's bias.
- SUM to 2.13: adds codes as they are if both quantizations are equal. Otherwise 2.13 reads 8-bit types as they are
  declared, and 2.12 rescales in float32. 16 bits are never rescaled; in LiteRT 1.0, too.

Source: LiteRT 2.3, reduce.cc PrepareMeanOrSum, EvalMean, InitializeMeanOutput, EvalSum; reference/reduce.h Mean,
QuantizedMeanOrSum. TensorFlow 2.5 to 2.14, reduce.cc EvalMean, EvalMeanReferenceOps, EvalSum; reference/reduce.h Mean,
ReduceGeneric, QuantizedMeanOrSum; reference/integer_ops/mean.h Mean; optimized_ops.h Mean (uint8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces, in_steps
from tflq.engine.kernels.families.reduction import AXES, Reduced, fold_sum, kernels, reduced_axes, sum_int32
from tflq.engine.kernels.families.rescaled_reduction import (
    Narrow,
    Rule,
    eval_mean_of_codes,
    eval_sum_of_codes,
    has_same_quantization,
)
from tflq.engine.kernels.filling import Call, filling, in_turn
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.mean_sum.images import over_image, prepare_divided_last, prepare_rounded, prepare_truncated
from tflq.engine.kernels.operands import require_zero_point_zero
from tflq.engine.kernels.validity import ref, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.multiplier import Multiplier, multiply_double_rounding, quantize_multiplier
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

Prepare = Callable[[Node, Arithmetic], Prepared]


@dataclass(frozen=True, slots=True, eq=False)
class MeanData:
    """Constants of a quantized MEAN."""

    reduced: Reduced
    zeros: ZeroPoint  # zero point of the input times the number of summands, LSB of input
    multiplier: Multiplier  # of the scaling and the division by n together, Q31, not normalised
    zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output


def prepare_mean(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the division by n into the multiplier, which is first shifted left as far as n and its own shift allow."""
    x, y = node.input(0), node.outputs[0]
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x, y)
    reduced = reduced_axes(node)
    mantissa, shift = quantize_multiplier(float(np.float64(x.scale) / np.float64(y.scale)))
    if prod(x.shape) == 0:
        return Prepared((reduced.shape,), np.zeros(reduced.shape, CARRIER[x.type]), eval_empty)
    room = min(reduced.count.bit_length() - 1, 32, 31 + shift)
    data = MeanData(
        reduced=reduced,
        zeros=ZeroPoint(x.zero_point * reduced.count),
        multiplier=Multiplier((mantissa << room) // reduced.count, shift - room),
        zero_point=y.zero_point,
        clamp=type_range(x.type.label),
    )
    return Prepared((reduced.shape,), data, eval_mean)


@filling(lambda data, x, _: (data.reduced.shape, x.dtype))
def eval_mean(data: MeanData, out: Array, x: Array, axes: Array) -> Call:
    """Source: QuantizedMeanOrSum. Rounding: half up, then half away. Overflow: the sum wraps int32."""
    rows, calls = data.reduced.bound(x)
    sums = np.zeros((rows.shape[0], rows.shape[2]), np.int32)
    calls += [partial(sums.fill, 0), fold_sum.bound(rows, sums, False)]
    constants = int(data.zeros), *data.multiplier, int(data.zero_point), *data.clamp
    return in_turn([*calls, _means.bound(sums.reshape(-1), *constants, out.reshape(-1))])


@in_pieces(4, sums="r", out="r")
@compiled
def _means(
    sums: Array, zeros: Int, mantissa: Int, shift: Int, zero_point: Int, low: Int, high: Int, out: Array
) -> None:
    """Eval guarantees: `sums` and `out` have the same size."""
    for i in range(len(out)):
        centred = wrap_int32(np.int64(sums[i]) - zeros)
        out[i] = clamp(multiply_double_rounding(centred, mantissa, shift) + zero_point, low, high)


def eval_empty(value: Array, x: Array, axes: Array) -> Array:
    """Source: InitializeMeanOutput."""
    return value.copy()


def prepare_mean_of_numbers(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Resolve the axes."""
    x = node.input(0)
    reduced = reduced_axes(node)
    if prod(x.shape) == 0:
        empty = np.full(reduced.shape, np.nan if x.type == TensorType.FLOAT32 else 0, CARRIER[x.type])
        return Prepared((reduced.shape,), empty, eval_empty)
    return Prepared(
        (reduced.shape,), reduced, eval_mean_of_floats if x.type == TensorType.FLOAT32 else eval_mean_of_integers
    )


@filling(lambda reduced, x, _: (reduced.shape, x.dtype))
def eval_mean_of_floats(reduced: Reduced, out: Array, x: Array, axes: Array) -> Call:
    """Source: Mean<float, float>. Rounding: float32 sums from 0 in order, one quotient."""
    rows, calls = reduced.bound(x)
    sums = out.reshape(rows.shape[0], rows.shape[2])
    return in_turn([*calls, _mean_floats.bound(rows, sums, np.float32(reduced.count))])


@in_steps(lambda x, out, count: x.size)
@compiled
def _mean_floats(x: Array, out: Array, count: Real) -> None:
    """Eval guarantees: `x` is (outer, reduced, inner) and `out` (outer, inner)."""
    out[:] = np.float32(0)
    fold_sum(x, out, False)
    _divide(out, count)


@in_pieces(sums="oi")
@compiled
def _divide(sums: Array, count: Real) -> None:
    """Eval guarantees: `sums` is (outer, inner)."""
    for o in range(sums.shape[0]):
        for i in range(sums.shape[1]):
            sums[o, i] /= count


def eval_mean_of_integers(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: Mean<T, int64_t>. Rounding: the quotient towards zero. Overflow: int64 sums wrap."""
    sums = np.add.reduce(reduced.rows(x), axis=1, dtype=np.int64)
    quotient = np.where(sums < 0, -(-sums // reduced.count), sums // reduced.count)
    return np.asarray(quotient.astype(x.dtype)).reshape(reduced.shape)


@dataclass(frozen=True, slots=True, eq=False)
class SumData:
    """Constants of a quantized SUM."""

    reduced: Reduced
    zeros: ZeroPoint  # zero point of the input times the number of summands, LSB of input
    read_as: np.dtype[Any]  # the type as which codes are read and written
    pipeline: OutputPipeline


def prepare_sum(node: Node, arithmetic: Arithmetic, read_as: DTypeLike = np.uint8) -> Prepared:
    """Compute the real multiplier as a float64 quotient. Codes are read and written as `read_as`."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    stage = arithmetic.requantize(np.float64(x.scale) / np.float64(y.scale))
    dtype = np.dtype(read_as)
    pipeline = OutputPipeline(stage, y.zero_point, type_range(dtype), dtype)
    data = SumData(reduced, ZeroPoint(x.zero_point * reduced.count), dtype, pipeline)
    return Prepared((reduced.shape,), data, eval_sum)


def eval_sum(data: SumData, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: once, by the stage. Overflow: the sum wraps int32."""
    rows = data.reduced.rows(x).view(data.read_as)
    if not rows.size:
        return np.zeros(data.reduced.shape, x.dtype)
    sums = sum_int32(rows) - np.int64(data.zeros).astype(np.int32)
    return data.pipeline(sums).view(x.dtype).reshape(data.reduced.shape)


def refuse_half_written(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse 16 bits."""
    raise UndefinedResultError("EvalSum", "int16 is written as uint8, half of the output stays unwritten")


def _zero(dtype: np.dtype[np.generic]) -> int:
    return 0


def divided_or(rule: Rule) -> Prepare:
    """Return a prepare that divides plain codes if both quantizations are equal, and otherwise follows the rule."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = node.input(0), node.outputs[0]
        if x.type == TensorType.INT16:
            require_zero_point_zero(node, x, y)
        reduced = reduced_axes(node)
        if prod(x.shape) == 0:
            return Prepared((reduced.shape,), np.zeros(reduced.shape, CARRIER[x.type]), eval_empty)
        if has_same_quantization(node):
            return Prepared((reduced.shape,), reduced, eval_mean_of_codes)
        return rule.prepare(node, arithmetic)

    return prepare


#: MEAN up to 2.12, except over images.
prepare_divided = divided_or(Rule(divide=True, narrow=Narrow.CLIP_FLOAT))


def prepare_image_of_signed(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Rescale and then divide the sums over images; 16 bits have no zero point."""
    x, y = node.input(0), node.outputs[0]
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x, y)
    return prepare_divided_last(node, arithmetic)


def added_or(rescale: Prepare) -> Prepare:
    """Return a prepare that adds plain codes if both quantizations are equal, and otherwise rescales their sums."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        if not has_same_quantization(node):
            return rescale(node, arithmetic)
        reduced = reduced_axes(node)
        return Prepared((reduced.shape,), reduced, eval_sum_of_codes)

    return prepare


def prepare_sum_as_declared(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Read and write codes as the type that the file declares."""
    return prepare_sum(node, arithmetic, node.input(0).type.label)


def refuse_rescaled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse 16-bit sums whose quantization differs from the input's: the release does not rescale them."""
    x, y = node.input(0), node.outputs[0]
    node.refuse("16 bits are not rescaled", y, expected=x.scale, got=y.scale)


def mean_rows(prepare: Prepare, *types: str) -> tuple[Kernel, ...]:
    """Return rows of MEAN, one a type."""
    return tuple(Kernel("MEAN", f"{t} int32 -> {t}", prepare, (1, 3), AXES) for t in types)


def sum_rows(prepare: Prepare, *types: str) -> tuple[Kernel, ...]:
    """Return rows of SUM, one a type."""
    return tuple(Kernel("SUM", f"{t} int32 -> {t}", prepare, (1, 2), AXES) for t in types)


MEAN_ROWS = (
    *mean_rows(prepare_mean_of_numbers, "float32", "int32", "int64"),
    *mean_rows(prepare_mean, "uint8", "int8", "int16"),
)
SUM_ROWS = (
    *kernels("SUM", fold_sum, _zero, ("float32", "int32", "int64"), (1, 2)),
    *sum_rows(prepare_sum, "uint8", "int8"),
    *sum_rows(refuse_half_written, "int16"),
)
#: SUM of 16 bits in releases that do not rescale it.
ADDED_INT16 = sum_rows(added_or(refuse_rescaled), "int16")

KERNELS = (
    *MEAN_ROWS,
    *SUM_ROWS,
    *valid(tflite("litert-1.0", "litert-1.0"), *ADDED_INT16),
    *valid(tflite(until="tflite-2.13"), *sum_rows(added_or(prepare_sum_as_declared), "uint8", "int8"), *ADDED_INT16),
    *valid(
        tflite(until="tflite-2.12"),
        *mean_rows(prepare_divided, "uint8", "int8", "int16"),
        *sum_rows(added_or(Rule(divide=False, narrow=Narrow.WRAP).prepare), "uint8", "int8"),
    ),
    *valid(
        tflite(until="tflite-2.9"),
        *mean_rows(over_image(prepare_image_of_signed, prepare_divided), "int8", "int16"),
        *mean_rows(over_image(prepare_rounded, prepare_divided), "uint8"),
    ),
    *valid(ref(until="tf-2.5"), *mean_rows(over_image(prepare_truncated, prepare_divided), "uint8")),
)
