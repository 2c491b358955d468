"""SUM of r1.15 on 8 bits: plain codes added modulo 256 where the scales are equal, else in float32, wrapping.

| operand | shape                | types       | quantization |
|---------|----------------------|-------------|--------------|
| x       | any                  | uint8, int8 | per tensor   |
| axes    | any                  | int32       |              |
| y       | x without, or with 1 | as x        | per tensor   |

Options: keep_dims. Rescaled sums are half a step too high.
Source: TensorFlow r1.15 lite/kernels/reduce.cc EvalSum; reference_ops.h ReduceGeneric, QuantizedMeanOrSum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.kernels.families.reduction import AXES, Reduced, reduced_axes, sum_int32
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import tf1
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import ZeroPoint
from tflq.numerics.rounding import floats_to_int32, nearest_half_away


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of a sum that is rescaled."""

    reduced: Reduced
    scale: np.float32  # LSB of input -> LSB of output
    bias: np.float32  # LSB of output: all zero points of the input, and half a step
    zero_point: ZeroPoint  # LSB of output


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Float32 throughout, left to right."""
    x, y = node.input(0), node.outputs[0]
    reduced = reduced_axes(node)
    if x.scale == y.scale:
        return Prepared((reduced.shape,), reduced, eval_codes)
    scale = x.scale / y.scale
    bias = np.float32(-x.zero_point) * scale * np.float32(reduced.count) + np.float32(0.5)
    return Prepared((reduced.shape,), OpData(reduced, scale, bias, y.zero_point), eval_float)


def eval_codes(reduced: Reduced, x: Array, axes: Array) -> Array:
    """Source: ReduceGeneric. Overflow: wraps the codes' own 8 bits."""
    return sum_int32(reduced.rows(x)).astype(x.dtype).reshape(reduced.shape)


def eval_float(data: OpData, x: Array, axes: Array) -> Array:
    """Source: QuantizedMeanOrSum. Rounding: product and sum to float32, then half away. Overflow: wraps 8 bits."""
    sums = sum_int32(data.reduced.rows(x)).astype(np.float32)
    codes = floats_to_int32(nearest_half_away(sums * data.scale + data.bias)) + np.int32(data.zero_point)
    return codes.astype(x.dtype).reshape(data.reduced.shape)


KERNELS = valid(tf1(), *(Kernel("SUM", f"{t} int32 -> {t}", prepare, (1, 2), AXES) for t in ("uint8", "int8")))
