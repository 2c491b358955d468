"""SQRT: y = square root of x.

| operand | shape | types                | quantization                    |
|---------|-------|----------------------|---------------------------------|
| x       | any   | float32, int8, int16 | per tensor; int16: zero point 0 |
| y       | as x  | as x                 | per tensor; int16: zero point 0 |

Quantized codes below the zero point raise when run.
Source: LiteRT 2.3, elementwise.cc GenericPrepare, SqrtEval, SqrtEvalQuantized.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.kernels.families.quantized_unary import check_elementwise, refuse_negative
from tflq.kernels.families.unary import prepare_function, same_type
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import Clamp, ZeroPoint
from tflq.numerics.rounding import floats_to_int32
from tflq.numerics.stages import type_range


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    input_scale: np.float32
    input_zero_point: ZeroPoint  # LSB of input
    output_scale: np.float32
    output_zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Float32 throughout."""
    x, y = same_type(node)
    check_elementwise(node)
    data = OpData(x.scale, x.zero_point, y.scale, y.zero_point, type_range(x.type.label))
    return Prepared((x.shape,), data, eval_quantized)


def eval_quantized(data: OpData, x: Array) -> Array:
    """Source: SqrtEvalQuantized. Rounding: product, root and quotient in float32, then towards zero."""
    refuse_negative("Sqrt", x, data.input_zero_point)
    real = data.input_scale * (x.astype(np.int32) - np.int32(data.input_zero_point)).astype(np.float32)
    whole = floats_to_int32(np.trunc(np.sqrt(real) / data.output_scale))
    codes = whole + np.int32(data.output_zero_point)
    return np.asarray(np.clip(codes, *data.clamp).astype(x.dtype))


KERNELS = (
    Kernel("SQRT", "float32 -> float32", prepare_function(np.sqrt), (1, 2)),
    Kernel("SQRT", "int8 -> int8", prepare_quantized, (1, 2)),
    Kernel("SQRT", "int16 -> int16", prepare_quantized, (1, 2)),
)
