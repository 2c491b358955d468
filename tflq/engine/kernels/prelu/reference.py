"""PRELU: y = x for x >= 0, alpha * x below.

| operand | shape              | types                       | quantization                     |
|---------|--------------------|-----------------------------|----------------------------------|
| x       | any                | float32, uint8, int8, int16 | per tensor                       |
| alpha   | broadcasts to x    | as x; int8 where x is int16 | per tensor                       |
| y       | as x               | as x                        | per tensor                       |

float32 by XNNPACK: see tflq/engine/kernels/families/xnnpack_floats.py.
Source: LiteRT 2.3, activations.cc PreluPrepare, ApplyPrelu; reference/prelu.h Prelu, BroadcastPrelu4DSlow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.xnnpack_floats import sloping
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stages import OutputStage, type_range
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of the quantized forms."""

    input_zero_point: ZeroPoint  # LSB of input
    alpha_zero_point: ZeroPoint  # LSB of alpha
    output_zero_point: ZeroPoint  # LSB of output
    positive: OutputStage  # LSB of input -> LSB of output
    negative: OutputStage  # LSB of input times LSB of alpha -> LSB of output
    clamp: Clamp  # LSB of output


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Scale by scale(x) / scale(y), negative input by scale(x) * scale(alpha) / scale(y)."""
    x, alpha, y = node.input(0), node.input(1), node.outputs[0]
    check_shape(node)
    data = OpData(
        input_zero_point=x.zero_point,
        alpha_zero_point=alpha.zero_point,
        output_zero_point=y.zero_point,
        positive=arithmetic.requantize(arithmetic.real_of_operands(x.scale, over=y.scale)),
        negative=arithmetic.requantize(arithmetic.real_of_operands(x.scale, alpha.scale, over=y.scale)),
        clamp=type_range(x.type.label),
    )
    return Prepared((x.shape,), data, eval_quantized)


def check_shape(node: Node) -> None:
    """Refuse an alpha that does not broadcast to the input's shape."""
    x, alpha = node.input(0), node.input(1)
    shape = broadcast_shape(node, x, alpha)
    node.check(shape == x.shape, "does not broadcast to the input's shape", alpha, expected=x.shape, got=alpha.shape)


def eval_quantized(data: OpData, x: Array, alpha: Array) -> Array:
    """Source: Prelu. Rounding: once, by the stage. Overflow: none (|x| < 2**16, |alpha| < 2**9 after centring)."""
    centred = x.astype(np.int32) - np.int32(data.input_zero_point)
    slope = alpha.astype(np.int32) - np.int32(data.alpha_zero_point)
    scaled = np.where(centred >= 0, data.positive(centred), data.negative(centred * slope))
    return np.clip(scaled + np.int32(data.output_zero_point), *data.clamp).astype(x.dtype)


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    check_shape(node)
    return Prepared((node.input(0).shape,), None, eval_float)


def eval_float(data: None, x: Array, alpha: Array) -> Array:
    """Source: ApplyPrelu. Rounding: one float32 product."""
    return np.where(x >= 0, x, x * alpha)


ROWS = (
    Kernel("PRELU", "float32 float32 -> float32", prepare_float, (1, 1)),
    Kernel("PRELU", "uint8 uint8 -> uint8", prepare_quantized, (1, 1)),
    Kernel("PRELU", "int8 int8 -> int8", prepare_quantized, (1, 1)),
    Kernel("PRELU", "int16 int8 -> int16", prepare_quantized, (1, 1)),
)

KERNELS = (*ROWS, *valid(xnnpack("litert-2.1", cpu="x86-64"), sloping("PRELU", ROWS, 2)))
