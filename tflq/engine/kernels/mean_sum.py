"""MEAN, SUM: means and sums over axes.

MEAN over height and width of images: the forms that several releases and resolvers share.

The form holds for four dimensions, kept, when the axes are 1 and 2. The vector code has one multiplier of the raw sum
and a bias for both zero points; blocks of channels begin at each thread's first channel, here one thread. The older
integer form rescales the sum and then divides it.
Source: LiteRT 2.3 reduce.cc EvalMean, BuildMeanParamsFor4D; optimized/integer_ops/mean.h Mean, MeanImpl;
optimized_ops.h Mean (uint8). TensorFlow r1.15 to 2.9 reference/integer_ops/mean.h Mean.

MEAN and SUM over axes.

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

SUM of TensorFlow Lite Micro: codes are read and written as the type that the model declares.

| operand | shape                | types       | quantization |
|---------|----------------------|-------------|--------------|
| x       | any                  | int8, int16 | per tensor   |
| axes    | any                  | int32       |              |
| y       | x without, or with 1 | as x        | per tensor   |

Options: keep_dims.
Source: tflite-micro (October 2026), reduce_common.cc EvalSumHelper, QuantizedMeanOrSum.

MEAN and SUM of the optimized resolver.

MEAN of 8-bit images runs vector code; to 2.5 it cuts off its bias. Every other form is the reference's, but half a
step too high in 2.3. Float sums begin with their first element; MEAN sums rows by Eigen if the last dimension alone
is reduced. SUM of 8-bit and 16-bit codes: one float32 product, one addition, one rounding; codes are read as they are
declared. In 2.14, 16 bits are added as they are and never rescaled. In 2.3, 8 bits are rescaled half a step too high,
and wrap. Source: LiteRT 2.3 reduce.cc EvalMean, EvalSum; optimized/reduce.h Mean (MeanLastDim/Float), MeanGeneral,
QuantizedMeanOrSum; reduce_utils.h ResolveAxis. TensorFlow 2.3 to 2.14 reduce.cc EvalMean, EvalSum; optimized_ops.h
Mean (uint8); reference_ops.h Mean, QuantizedMeanOrSum.

MEAN and SUM of r1.15 on 8 bits.

| operand | shape                           | types       | quantization |
|---------|---------------------------------|-------------|--------------|
| x       | any; MEAN of int8: N,H,W,C      | uint8, int8 | per tensor   |
| axes    | any; MEAN of int8: 1 and 2      | int32       |              |
| y       | x without, or with 1            | as x        | per tensor   |

Options: keep_dims.
MEAN of uint8 divides plain codes if both quantizations are equal, SUM adds them if both scales are; otherwise both work
in float32, are half a step too high, and wrap. MEAN of int8 rescales the sum before it divides; its loops know only
four dimensions and the two in their middle.
The optimized MEAN differs over images: channels go in blocks of 8 while at least one is left after the block. Their
sums are multiplied by an *estimate* of the reciprocal of n, so that these bits belong to a processor. The last 1 to 8
channels are divided.
Source: TensorFlow r1.15 lite/kernels/reduce.cc EvalMean, EvalSum; reference_ops.h Mean, ReduceGeneric,
QuantizedMeanOrSum; reference/integer_ops/mean.h; optimized_ops.h Mean, MeanImpl; optimized/integer_ops/mean.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces, in_steps
from tflq.engine.kernels.checks import require_zero_point_zero
from tflq.engine.kernels.families.reduction import (
    AXES,
    NarrowSum,
    ReducedAxes,
    Rescaled,
    RescalingRule,
    add,
    eval_mean_of_codes,
    eval_rescaled,
    eval_sum_of_codes,
    folding,
    has_same_quantization,
    over_axes,
    reduced_axes,
    rows_by_type,
    sum_int32,
)
from tflq.engine.kernels.families.unary import unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import channel_blocks
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepare, Prepared, Shape, filling, in_turn, undefined, valid
from tflq.engine.kernels.validity import SPEC, micro, opt, ref, tf1, tflite
from tflq.engine.numerics import eigen
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.estimates import ReciprocalEstimate
from tflq.engine.numerics.multiplier import Multiplier, multiply_double_rounding, quantize_multiplier
from tflq.engine.numerics.rounding import clamp, float_to_int32, floats_to_int32, nearest_half_away, wrap_int32
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, type_range
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Channels that the vector loop takes at a time.
BLOCK = 16


@dataclass(frozen=True, slots=True, eq=False)
class VectorData:
    """Constants of the vector code."""

    reduced: ReducedAxes
    pipeline: OutputPipeline  # raw sums -> codes; the zero point is the bias


@dataclass(frozen=True, slots=True, eq=False)
class IntegerData:
    """Constants of the form that divides last."""

    reduced: ReducedAxes
    zeros: ZeroPoint  # zero point of the input times the number of summands, LSB of input
    stage: OutputStage  # LSB of input -> LSB of output
    zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output


def has_image_axes(node: Node) -> bool:
    """Return whether the axes are given as 1 and 2 of four dimensions, in either order."""
    return len(node.input(0).shape) == 4 and sorted(node.constant(1).reshape(-1).tolist()) == [1, 2]


def names_image_axes(node: Node) -> bool:
    """Return whether the axes name 1 and 2 of four dimensions: negative ones and repetitions count."""
    return len(node.input(0).shape) == 4 and {int(axis) % 4 for axis in node.constant(1).reshape(-1)} == {1, 2}


def over_image(special: Prepare, otherwise: Prepare, is_image: Callable[[Node], bool] = has_image_axes) -> Prepare:
    """Return a prepare that takes `special` for images whose axes are kept, and `otherwise` for every other form."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        takes = is_image(node) and bool(node.options["keep_dims"]) and prod(node.input(0).shape) > 0
        return (special if takes else otherwise)(node, arithmetic)

    return prepare


def prepare_rounded(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Round the input's part of the bias half away: zero point * scale / scale in float32."""
    shifted = _shift(node)
    half = np.float32(0.5)
    offset = int(float_to_int32(np.trunc(shifted + half if shifted > 0 else shifted - half)))
    return _prepare_biased(node, arithmetic, int(wrap_int32(node.outputs[0].zero_point - offset)))


def prepare_truncated(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Round the input's part of the bias towards zero."""
    return _prepare_biased(node, arithmetic, node.outputs[0].zero_point - int(_shift(node)))


def _shift(node: Node) -> np.float32:
    x, y = node.input(0), node.outputs[0]
    return np.float32(x.zero_point) * x.scale / y.scale


def _prepare_biased(node: Node, arithmetic: Arithmetic, bias: int) -> Prepared:
    """Prepare the vector code: `bias` holds both zero points, LSB of output; the multiplier is scale / (n * scale)."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    real = np.float64(x.scale / (np.float32(reduced.count) * y.scale))
    dtype = CARRIER[x.type]
    stage = channel_blocks(arithmetic, BLOCK)(np.full(x.shape[3], real))
    data = VectorData(reduced, OutputPipeline(stage, ZeroPoint(bias), type_range(dtype), dtype))
    return Prepared((reduced.shape,), data, eval_over_image)


def eval_over_image(data: VectorData, x: Array, axes: Array) -> Array:
    """Source: MeanImpl. Rounding: by the stage. Overflow: the sum wraps int32."""
    return data.pipeline(sum_int32(data.reduced.rows(x))).reshape(data.reduced.shape)


def prepare_divided_last(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the real multiplier as a float64 quotient."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    stage = arithmetic.requantize(np.float64(x.scale) / np.float64(y.scale))
    zeros = ZeroPoint(x.zero_point * reduced.count)
    data = IntegerData(reduced, zeros, stage, y.zero_point, type_range(CARRIER[x.type]))
    return Prepared((reduced.shape,), data, eval_divided_last)


def eval_divided_last(data: IntegerData, x: Array, axes: Array) -> Array:
    """Source: integer_ops Mean. Rounding: the sum by the stage, then its n-th part half away. Overflow: int32 wraps."""
    count = data.reduced.count
    scaled = data.stage(sum_int32(data.reduced.rows(x)) - np.int64(data.zeros).astype(np.int32)).astype(np.int64)
    parts = np.sign(scaled) * ((np.abs(scaled) + count // 2) // count)
    codes = np.clip(parts + data.zero_point, *data.clamp)
    return np.asarray(codes, x.dtype).reshape(data.reduced.shape)


_ADD = over_axes(add)


@dataclass(frozen=True, slots=True, eq=False)
class MeanData:
    """Constants of a quantized MEAN."""

    reduced: ReducedAxes
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
    calls += [partial(sums.fill, 0), _ADD.bound(rows, sums, False)]
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
def eval_mean_of_floats(reduced: ReducedAxes, out: Array, x: Array, axes: Array) -> Call:
    """Source: Mean<float, float>. Rounding: float32 sums from 0 in order, one quotient."""
    rows, calls = reduced.bound(x)
    sums = out.reshape(rows.shape[0], rows.shape[2])
    return in_turn([*calls, _mean_floats.bound(rows, sums, np.float32(reduced.count))])


@in_steps(lambda x, out, count: x.size)
@compiled
def _mean_floats(x: Array, out: Array, count: Real) -> None:
    """Eval guarantees: `x` is (outer, reduced, inner) and `out` (outer, inner)."""
    out[:] = np.float32(0)
    _ADD(x, out, False)
    _divide(out, count)


@in_pieces(sums="oi")
@compiled
def _divide(sums: Array, count: Real) -> None:
    """Eval guarantees: `sums` is (outer, inner)."""
    for o in range(sums.shape[0]):
        for i in range(sums.shape[1]):
            sums[o, i] /= count


def eval_mean_of_integers(reduced: ReducedAxes, x: Array, axes: Array) -> Array:
    """Source: Mean<T, int64_t>. Rounding: the quotient towards zero. Overflow: int64 sums wrap."""
    sums = np.add.reduce(reduced.rows(x), axis=1, dtype=np.int64)
    quotient = np.where(sums < 0, -(-sums // reduced.count), sums // reduced.count)
    return np.asarray(quotient.astype(x.dtype)).reshape(reduced.shape)


@dataclass(frozen=True, slots=True, eq=False)
class SumData:
    """Constants of a quantized SUM."""

    reduced: ReducedAxes
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


def _zero(dtype: np.dtype[np.generic]) -> int:
    return 0


def divided_or(rule: RescalingRule) -> Prepare:
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
prepare_divided = divided_or(RescalingRule(divide=True, narrow=NarrowSum.CLIP_FLOAT))


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
HALF_WRITTEN = undefined("int16 is written as uint8, half of the output stays unwritten", "EvalSum")
SUM_ROWS = (
    *sum_rows(folding(add, _zero), "float32", "int32", "int64"),
    *sum_rows(prepare_sum, "uint8", "int8"),
    *sum_rows(HALF_WRITTEN, "int16"),
)
#: SUM of 16 bits in releases that do not rescale it.
prepare_added = added_or(refuse_rescaled)

_REFERENCE = (
    *MEAN_ROWS,
    *SUM_ROWS,
    *rows_by_type(
        "MEAN",
        3,
        {
            "uint8": {
                tflite(until="tflite-2.12"): prepare_divided,
                tflite(until="tflite-2.9"): over_image(prepare_rounded, prepare_divided),
                ref(until="tf-2.5"): over_image(prepare_truncated, prepare_divided),
            },
            "int8 int16": {
                tflite(until="tflite-2.12"): prepare_divided,
                tflite(until="tflite-2.9"): over_image(prepare_image_of_signed, prepare_divided),
            },
        },
    ),
    *rows_by_type(
        "SUM",
        2,
        {
            "uint8 int8": {
                tflite(until="tflite-2.13"): added_or(prepare_sum_as_declared),
                tflite(until="tflite-2.12"): added_or(RescalingRule(divide=False, narrow=NarrowSum.WRAP).prepare),
            },
            "int16": {tflite("litert-1.0", "litert-1.0"): prepare_added, tflite(until="tflite-2.13"): prepare_added},
        },
    ),
)


_MICRO = valid(micro(SPEC), *sum_rows(prepare_sum_as_declared, "int8", "int16"))


_SUM = RescalingRule(divide=False, narrow=NarrowSum.CLIP)
_RAISED_MEAN = RescalingRule(divide=True, narrow=NarrowSum.CLIP_FLOAT, half_step=True)
_RAISED_SUM = RescalingRule(divide=False, narrow=NarrowSum.WRAP, half_step=True)


def prepare_sum_optimized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Give code 0 for a sum of no elements, regardless of the zero point."""
    x, reduced = node.input(0), reduced_axes(node)
    if prod(x.shape) == 0:
        return Prepared((reduced.shape,), np.zeros(reduced.shape, CARRIER[x.type]), eval_empty)
    return Prepared((reduced.shape,), _SUM.of(node, reduced), eval_sum_optimized)


def eval_sum_optimized(data: Rescaled, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: float32, product and sum apart, then half away. Overflow: int32 wraps."""
    return eval_rescaled(data, x, axes)


def prepare_mean_of_rows(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, except for sums of rows and those that begin with their first element."""
    prepared = prepare_mean_of_numbers(node, arithmetic)
    if prepared.eval is eval_empty:
        return prepared
    return replace(prepared, data=reduced_axes(node), eval=eval_rows if is_last(node) else eval_from_first)


def is_last(node: Node) -> bool:
    """Return whether axes at the end alone are reduced. Axes of size 1 do not count."""
    shape = node.input(0).shape
    axes = {int(axis) % len(shape) for axis in node.constant(1).reshape(-1)} if 0 not in shape and shape else set()
    is_reduced = [axis in axes for axis, size in enumerate(shape) if size != 1]
    return set(is_reduced) == {False, True} and is_reduced == sorted(is_reduced)


def eval_rows(reduced: ReducedAxes, x: Array, axes: Array) -> Array:
    """Source: MeanLastDim. Rounding: each sum, in Eigen's order, then the quotient."""
    rows = np.ascontiguousarray(x).reshape(-1, reduced.count)
    return np.asarray(eigen.row_sums(rows) / np.float32(reduced.count)).reshape(reduced.shape)


def eval_from_first(reduced: ReducedAxes, x: Array, axes: Array) -> Array:
    """Source: MeanGeneral. Rounding: float32 sums in order, which begin with the first element; one quotient."""
    rows = reduced.rows(x)
    sums = np.empty((rows.shape[0], rows.shape[2]), np.float32)
    over_axes(add)(rows, sums, True)
    return np.asarray(sums / np.float32(reduced.count)).reshape(reduced.shape)


_SUM_FROM_ZERO = next(row for row in SUM_ROWS if row.signature.is_float)


def prepare_sum_from_first(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; sums begin with the first element, so that negative zeros stay."""
    prepared = _SUM_FROM_ZERO.prepare(node, arithmetic)
    return replace(prepared, data=replace(prepared.data, reduced=replace(prepared.data.reduced, over_all=True)))


_OPTIMIZED = (
    *rows_by_type(
        "MEAN",
        3,
        {
            "uint8 int8": {
                opt(): over_image(prepare_rounded, prepare_mean, names_image_axes),
                opt(until="litert-2.1"): over_image(prepare_rounded, prepare_mean),
                opt(until="tflite-2.12"): over_image(prepare_rounded, prepare_divided),
                opt(until="tf-2.5", vectors=True): over_image(prepare_truncated, prepare_divided),
                opt(until="tf-2.3", vectors=True): over_image(prepare_truncated, divided_or(_RAISED_MEAN)),
            },
            "float32": {opt("litert-1.0"): prepare_mean_of_rows},
        },
    ),
    *valid(opt(), *unclaimed_floats(SUM_ROWS)),
    *rows_by_type(
        "SUM",
        2,
        {
            "float32": {opt("litert-1.0", cpu="x86-64"): prepare_sum_from_first},
            "uint8 int8": {
                opt("litert-1.0"): prepare_sum_optimized,
                opt(until="tflite-2.14"): prepare_sum_optimized,
                opt(until="tf-2.3"): added_or(_RAISED_SUM.prepare),
            },
            "int16": {opt("litert-1.0"): prepare_sum_optimized, opt(until="tflite-2.14"): prepare_added},
        },
    ),
    *valid(opt(until="tflite-2.14"), *unclaimed_floats(MEAN_ROWS)),
)


_MEAN = RescalingRule(divide=True, narrow=NarrowSum.WRAP, half_step=True)
#: Channels that the optimized loop takes at a time.
TF1_BLOCK = 8
ESTIMATE = ReciprocalEstimate.read("reciprocal_estimate.json")


def prepare_sum_tf1(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compare the scales alone."""
    if node.input(0).scale != node.outputs[0].scale:
        return _RAISED_SUM.prepare(node, arithmetic)
    reduced = reduced_axes(node)
    return Prepared((reduced.shape,), reduced, eval_sum_of_codes)


def prepare_mean_tf1(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse a mean of no elements."""
    reduced = reduced_axes(node)
    _check_count(reduced)
    if has_same_quantization(node):
        return Prepared((reduced.shape,), reduced, eval_mean_of_codes)
    return _MEAN.prepare(node, arithmetic)


def _check_count(reduced: ReducedAxes) -> None:
    if reduced.count == 0:
        raise UndefinedResultError("Mean", "a mean of no elements")


def prepare_mean_of_image(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse forms that the loops do not know: they leave outputs unwritten."""
    _check_image(node)
    return prepare_divided_last(node, arithmetic)


def _check_image(node: Node) -> None:
    """Refuse shapes that the four-dimensional loops over height and width do not expect."""
    x, reduced = node.input(0), reduced_axes(node)
    _check_count(reduced)
    if not has_image_axes(node) or not covers(reduced.shape, x.shape):
        raise UndefinedResultError("Mean", f"int8 of shape {list(x.shape)} to {list(reduced.shape)}")


def covers(output: Shape, image: Shape) -> bool:
    """Return whether an output, filled up to four dimensions from the left, is (N, 1, 1, C)."""
    return (1,) * (4 - len(output)) + output == (image[0], 1, 1, image[3])


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedData:
    """Constants of an optimized mean over an image."""

    general: Rescaled
    same: bool  # whether input and output have one quantization
    reciprocal: np.float32  # an estimate of 1 / n
    estimated: int  # channels in whole blocks


def prepare_estimated(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Look up the reciprocal of n as this processor estimates it."""
    reduced = reduced_axes(node)
    whole = TF1_BLOCK * ((node.input(0).shape[3] - 1) // TF1_BLOCK)
    data = EstimatedData(_MEAN.of(node, reduced), has_same_quantization(node), ESTIMATE(reduced.count), whole)
    return Prepared((reduced.shape,), data, eval_estimated)


def prepare_optimized_uint8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Use the loop over images if dimensions are kept, else the general form."""
    x = node.input(0)
    is_image = has_image_axes(node) and bool(node.options["keep_dims"]) and 0 not in x.shape
    return (prepare_estimated if is_image else prepare_mean_tf1)(node, arithmetic)


def prepare_optimized_int8(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require an image; the loop is four-dimensional for any rank of the output."""
    _check_image(node)
    return prepare_estimated(node, arithmetic)


def eval_estimated(data: EstimatedData, x: Array, axes: Array) -> Array:
    """Source: MeanImpl. Rounding: products to float32, then half to even in blocks, half away behind them; uint8 in
    blocks without rescaling half up. Overflow: wraps, except that negative results in blocks of uint8 give 0.
    """
    general = data.general
    sums = sum_int32(general.reduced.rows(x)).astype(np.float32)
    blocks, rest = sums[:, : data.estimated] * data.reciprocal, sums[:, data.estimated :]
    rest = rest / np.float32(general.reduced.count)
    if data.same:
        whole = np.floor(blocks + np.float32(0.5)) if x.dtype == np.uint8 else np.rint(blocks)
        codes = floats_to_int32(whole), floats_to_int32(nearest_half_away(rest))
    else:
        whole = np.rint(blocks * general.scale + general.bias)
        codes = (
            floats_to_int32(whole) + np.int32(general.zero_point),
            general.integers(rest * general.scale + general.bias),
        )
    first = np.maximum(codes[0], 0) if x.dtype == np.uint8 else codes[0]
    return np.concatenate((first, codes[1]), axis=1).astype(x.dtype).reshape(general.reduced.shape)


_TF1 = (
    *valid(
        tf1(),
        Kernel("MEAN", "uint8 int32 -> uint8", prepare_mean_tf1, (1, 2), AXES),
        Kernel("MEAN", "int8 int32 -> int8", prepare_mean_of_image, (1, 2), AXES),
        *(Kernel("SUM", f"{t} int32 -> {t}", prepare_sum_tf1, (1, 2), AXES) for t in ("uint8", "int8")),
    ),
    *valid(
        tf1("opt"),
        Kernel("MEAN", "uint8 int32 -> uint8", prepare_optimized_uint8, (1, 2), AXES),
        Kernel("MEAN", "int8 int32 -> int8", prepare_optimized_int8, (1, 2), AXES),
    ),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_OPTIMIZED, *_TF1)
