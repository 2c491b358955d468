"""QUANTIZE: y = x / scale + zero point; or from one quantization to another.

| operand | shape | types                          | y's types                                | quantization           |
|---------|-------|--------------------------------|------------------------------------------|------------------------|
| x       | any   | float32                        | int8, uint8, int16, int4, uint4          | y: per tensor or axis  |
|         |       | int8, uint8                    | int8, uint8, int16                       | per tensor             |
|         |       | int16                          | int8, int16 (zero points 0), int32       | per tensor             |
|         |       | int32                          | int8, int16                              | per tensor             |
| y       | as x  |                                |                                          |                        |

Source: LiteRT 2.3, quantize.cc Prepare, AffineQuantizeToInt4; reference/quantize.h AffineQuantize, PerChannelQuantize;
reference/requantize.h Requantize.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.code_limits import NARROW, code_limits
from tflq.engine.kernels.families.unary import prepare_unary
from tflq.engine.kernels.filling import Call, filling, in_turn
from tflq.engine.kernels.geometry.axes import along
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint, ZeroPoints
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: Elements of an input whose accumulators are kept from run to run.
_KEPT = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of float32 to integer: one entry a channel, channels in the middle of (outer, channels, inner)."""

    scale: Array  # float32, real units per LSB of output
    zero_point: ZeroPoints  # LSB of output
    clamp: Clamp  # LSB of output
    dtype: np.dtype[Any]
    rows: tuple[int, int, int]


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare per axis if the output has several scales."""
    x, y = node.input(0), node.outputs[0]
    node.check(y.is_quantized, "is not quantized", y)
    channels = along(node, y, x.shape)
    node.check(channels.count == 1 or y.type not in NARROW, "is quantized per axis, which 4-bit types cannot be", y)
    dtype = CARRIER[y.type]
    clamp = code_limits(y.type)
    data = FloatData(channels.scale, ZeroPoints(channels.zero_point), clamp, dtype, channels.rows)
    return Prepared((x.shape,), data, eval_float)


@filling(lambda data, x: (x.shape, data.dtype))
def eval_float(data: FloatData, out: Array, x: Array) -> Call:
    """Source: AffineQuantize. Rounding: float32 quotient, then half away from zero. Overflow: as float_to_int32."""
    rows = np.ascontiguousarray(x).reshape(data.rows), out.reshape(data.rows)
    return _quantize.bound(rows[0], data.scale, data.zero_point.codes, *data.clamp, rows[1])


@in_pieces(4, x="oci", out="oci", scale="c", zero_point="c")
@compiled
def _quantize(x: Array, scale: Array, zero_point: Array, low: Int, high: Int, out: Array) -> None:
    """Prepare guarantees: `x` is (outer, channels, inner), `scale` and `zero_point` have an entry for every channel.
    Eval guarantees: `out` has the shape of `x`.
    """
    for outer in range(x.shape[0]):
        for c in range(x.shape[1]):
            step, offset = scale[c], np.int32(zero_point[c])
            for inner in range(x.shape[2]):
                real = np.float32(x[outer, c, inner] / step)
                cut = np.trunc(real)
                away = np.copysign(np.float32(abs(real - cut) >= np.float32(0.5)), real)
                whole = np.float32(cut + away)  # exact: what is cut off is below 2**23
                fits = (whole >= np.float32(-2147483648.0)) & (whole < np.float32(2147483648.0))
                code = np.int32(whole if fits else np.float32(-2147483648.0))
                out[outer, c, inner] = min(max(np.int32(code + offset), np.int32(low)), np.int32(high))


@dataclass(frozen=True, slots=True, eq=False)
class RequantizeData:
    """Constants of integer to integer."""

    zero_point: ZeroPoint  # LSB of input
    pipeline: OutputPipeline


def prepare_requantize(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the real multiplier as a float64 quotient."""
    x, y = node.input(0), node.outputs[0]
    node.check(y.is_quantized, "is not quantized", y)
    dtype = CARRIER[y.type]
    if x.type == y.type == TensorType.INT16:
        for operand in (x, y):
            node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    stage = arithmetic.requantize(np.float64(x.scale) / np.float64(y.scale))
    data = RequantizeData(x.zero_point, OutputPipeline(stage, y.zero_point, type_range(dtype), dtype))
    return prepare_unary(node, data, eval_requantize, CARRIER[x.type])


def _requantize_once(data: RequantizeData, x: Array) -> Array:
    return data.pipeline(x.astype(np.int32) - np.int32(data.zero_point))


@filling(lambda data, x: (x.shape, data.pipeline.dtype), once=_requantize_once)
def eval_requantize(data: RequantizeData, out: Array, x: Array) -> Call:
    """Source: Requantize. Rounding: once, by the stage. Overflow: x - zero point wraps int32."""
    if x.size > _KEPT or not x.size:
        return lambda: np.copyto(out, _requantize_once(data, x))
    centred = np.empty(x.shape, np.int32)
    subtract = partial(np.subtract, x, np.int32(data.zero_point), centred, dtype=np.int32)
    return in_turn([subtract, data.pipeline.into(centred, out)])


KERNELS = (
    Kernel("QUANTIZE", "float32 -> int8|uint8|int16|int4|uint4", prepare_float, (1, 6)),
    Kernel("QUANTIZE", "int8|uint8 -> int8|uint8|int16", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "int16 -> int8|int16|int32", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "int32 -> int8|int16", prepare_requantize, (1, 6)),
)
