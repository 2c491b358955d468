"""REDUCE_PROD: y = product of x over the axes.

| operand | shape                | types                            | quantization                            |
|---------|----------------------|----------------------------------|-----------------------------------------|
| x       | any                  | float32, int32, int64            | none                                    |
|         |                      | int8, int16                      | none; or per tensor, int16: zero point 0 |
| axes    | any                  | int32                            |                                         |
| y       | x without, or with 1 | as x                             | as x has any                            |

Options: keep_dims.
Source: LiteRT 2.3, reduce.cc PrepareProd, GetQuantProdScaling, EvalQuantizedProd; reference/reduce.h
QuantizedReduceProd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.reduction import AXES, Reduced, fold_product, kernels, reduced_axes
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.compiled import Int, compiled
from tflq.numerics.multiplier import multiply_wide, quantize_multiplier
from tflq.numerics.rounding import clamp, wrap_int32
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    reduced: Reduced
    input_zero_point: int  # LSB of input
    mantissa: int  # of the scaling after every product, Q31
    shift: int  # to the left
    output_zero_point: int  # LSB of output
    low: int  # LSB of output
    high: int


def _start(dtype: np.dtype[np.generic]) -> int:
    return 1


PLAIN = kernels("REDUCE_PROD", fold_product, _start, ("float32", "int32", "int64", "int8", "int16"), (1, 2))


def prepare_integer(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Plain without quantization. Else every one of n products is scaled by input scale / output scale ** (1/n)."""
    x, y = node.input(0), node.outputs[0]
    if not x.is_quantized:
        return PLAIN[0].prepare(node, arithmetic)
    if x.type.label == "int16":
        for operand in (x, y):
            node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    reduced = reduced_axes(node)
    if math.prod(x.shape) == 0:
        raise UndefinedResultError("QuantizedReduceProd", "no elements to multiply: the output stays unwritten")
    scaling = float(x.scale) / math.pow(float(y.scale), 1.0 / reduced.count)
    low, high = type_range(x.type.label)
    data = OpData(reduced, x.zero_point, *quantize_multiplier(scaling), y.zero_point, low, high)
    return Prepared((reduced.shape,), data, eval_quantized)


def eval_quantized(data: OpData, x: Array, axes: Array) -> Array:
    """Source: QuantizedReduceProd. Rounding: half up after every product, by the int64 form. Overflow: wraps int32."""
    rows = data.reduced.rows(x)
    out = np.empty((rows.shape[0], rows.shape[2]), x.dtype)
    _products(
        rows, data.input_zero_point, data.mantissa, data.shift, data.output_zero_point, data.low, data.high, out
    )  # fmt: skip
    return out.reshape(data.reduced.shape)


@compiled
def _products(
    x: Array, zero_in: Int, mantissa: Int, shift: Int, zero_out: Int, low: Int, high: Int, out: Array
) -> None:  # fmt: skip
    outer, count, inner = x.shape
    for o in range(outer):
        for i in range(inner):
            product = np.int64(x[o, 0, i]) - zero_in
            for k in range(1, count):
                product = wrap_int32(multiply_wide(product * (np.int64(x[o, k, i]) - zero_in), mantissa, shift))
            out[o, i] = clamp(wrap_int32(multiply_wide(product, mantissa, shift)) + zero_out, low, high)


KERNELS = (
    *PLAIN[:3],
    *(Kernel("REDUCE_PROD", f"{t} int32 -> {t}", prepare_integer, (1, 2), AXES) for t in ("int8", "int16")),
)
