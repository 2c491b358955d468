"""MEAN: y = mean of x over the axes.

| operand | shape                | types                 | quantization                    |
|---------|----------------------|-----------------------|---------------------------------|
| x       | any                  | float32, int32, int64 | none                            |
|         |                      | uint8, int8, int16    | per tensor; int16: zero point 0 |
| axes    | any                  | int32                 |                                 |
| y       | x without, or with 1 | as x                  | as x                            |

Options: keep_dims. Over no elements: NaN, or code 0.
Source: LiteRT 2.3, reduce.cc PrepareMeanOrSum, EvalMean, InitializeMeanOutput; reference/reduce.h Mean,
QuantizedMeanOrSum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from tflq.ir import CARRIER, TensorType
from tflq.jit.compiled import Int, Real, compiled
from tflq.jit.pieces import in_pieces, in_steps
from tflq.kernels.families.reduction import AXES, Reduced, fold_sum, reduced_axes
from tflq.kernels.filling import Call, filling, in_turn
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import Clamp, ZeroPoint
from tflq.numerics.multiplier import Multiplier, multiply_double_rounding, quantize_multiplier
from tflq.numerics.rounding import clamp, wrap_int32
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    reduced: Reduced
    zeros: ZeroPoint  # zero point of the input times the number of summands, LSB of input
    multiplier: Multiplier  # of the scaling and the division by n together, Q31, not normalised
    zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The division by n is taken into the multiplier, which is first shifted left by what n and its own shift allow."""
    x, y = node.input(0), node.outputs[0]
    if x.type == TensorType.INT16:
        for operand in (x, y):
            node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    reduced = reduced_axes(node)
    mantissa, shift = quantize_multiplier(float(np.float64(x.scale) / np.float64(y.scale)))
    if prod(x.shape) == 0:
        return Prepared((reduced.shape,), np.zeros(reduced.shape, CARRIER[x.type]), eval_empty)
    room = min(reduced.count.bit_length() - 1, 32, 31 + shift)
    data = OpData(
        reduced=reduced,
        zeros=ZeroPoint(x.zero_point * reduced.count),
        multiplier=Multiplier((mantissa << room) // reduced.count, shift - room),
        zero_point=y.zero_point,
        clamp=type_range(x.type.label),
    )
    return Prepared((reduced.shape,), data, eval_quantized)


@filling(lambda data, x, _: (data.reduced.shape, x.dtype))
def eval_quantized(data: OpData, out: Array, x: Array, axes: Array) -> Call:
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


def prepare_number(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Only the axes."""
    x = node.input(0)
    reduced = reduced_axes(node)
    if prod(x.shape) == 0:
        empty = np.full(reduced.shape, np.nan if x.type == TensorType.FLOAT32 else 0, CARRIER[x.type])
        return Prepared((reduced.shape,), empty, eval_empty)
    return Prepared((reduced.shape,), reduced, eval_float if x.type == TensorType.FLOAT32 else eval_integer)


@filling(lambda reduced, x, _: (reduced.shape, x.dtype))
def eval_float(reduced: Reduced, out: Array, x: Array, axes: Array) -> Call:
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


def eval_integer(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: Mean<T, int64_t>. Rounding: the quotient towards zero. Overflow: int64 sums wrap."""
    sums = np.add.reduce(reduced.rows(x), axis=1, dtype=np.int64)
    quotient = np.where(sums < 0, -(-sums // reduced.count), sums // reduced.count)
    return np.asarray(quotient.astype(x.dtype)).reshape(reduced.shape)


KERNELS = (
    *(Kernel("MEAN", f"{t} int32 -> {t}", prepare_number, (1, 3), AXES) for t in ("float32", "int32", "int64")),
    *(Kernel("MEAN", f"{t} int32 -> {t}", prepare_quantized, (1, 3), AXES) for t in ("uint8", "int8", "int16")),
)
