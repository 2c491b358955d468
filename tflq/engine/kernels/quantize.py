"""QUANTIZE: y = x / scale + zero point, or from one quantization to another.

QUANTIZE: y = x / scale + zero point; or from one quantization to another.

| operand | shape | types                          | y's types                                | quantization           |
|---------|-------|--------------------------------|------------------------------------------|------------------------|
| x       | any   | float32                        | int8, uint8, int16, int4, uint4          | y: per tensor or axis  |
|         |       | int8, uint8                    | int8, uint8, int16                       | per tensor             |
|         |       | int16                          | int8, int16 (zero points 0), int32       | per tensor             |
|         |       | int32                          | int8, int16                              | per tensor             |
| y       | as x  |                                |                                          |                        |

Source: LiteRT 2.3, quantize.cc Prepare, AffineQuantizeToInt4; reference/quantize.h AffineQuantize, PerChannelQuantize;
reference/requantize.h Requantize.

QUANTIZE of TensorFlow Lite Micro: LiteRT's arithmetic, for other pairs of types.

| operand | shape | types   | y's types                 | quantization           |
|---------|-------|---------|---------------------------|------------------------|
| x       | any   | float32 | int8, int16               | y: per tensor or axis  |
|         |       | int8    | int8, uint8, int16, int32 | per tensor             |
|         |       | uint8   | int8                      | per tensor             |
|         |       | int16   | int8, int16, int32        | per tensor             |
|         |       | int32   | int8, int16               | per tensor             |
| y       | as x  |         |                           |                        |

Source: tflite-micro (October 2026), quantize_common.cc PrepareQuantizeReference, EvalQuantizeReference.

QUANTIZE of the optimized resolver.

Per tensor; several scales are quantized as in the reference.
Vector code: float32 eight at a time by a float32 reciprocal, rounded half to even; 8-bit codes to 8-bit codes sixteen
at a time, rounded half up twice, what is left over as the reference. Scalar code, for the rest of float32 and up to
2.14 without vectors: a float64 quotient, rounded half away from zero. AArch64 up to 2.14, in both resolvers: a float32
reciprocal, rounded half away from zero, as its wheel may turn quotients into products.
Source: LiteRT 2.3 and TensorFlow 2.14 optimized_ops.h AffineQuantize, Requantize, with USE_NEON and without;
RoundToNearest; reference/quantize.h AffineQuantize.

QUANTIZE of r1.15 from float32: by vector code in both resolvers, as the optimized kernel that shares the name.

Integers are requantized as in the reference kernel.
Source: TensorFlow r1.15 lite/kernels/quantize.cc; optimized_ops.h AffineQuantize with USE_NEON.

QUANTIZE by XNNPACK: float32 to 8 bits through a reciprocal, and 8 bits to the same type with 8 fractional bits.

Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK's f32-qs8 and qs8 vcvt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.flushing import TINY
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import NARROW, code_limits, require_zero_point_zero
from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized, meeting, needs, result
from tflq.engine.kernels.families.unary import prepare_unary
from tflq.engine.kernels.families.vector_blocks import TwoTables, eval_tables, in_whole_blocks
from tflq.engine.kernels.families.xnnpack import XnnpackSlopesData as FixedData
from tflq.engine.kernels.families.xnnpack import evaluate_xnnpack_slopes, fix
from tflq.engine.kernels.geometry.axes import along
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, filling, in_turn, valid
from tflq.engine.kernels.validity import micro, opt, tf1, tflite, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint, ZeroPoints
from tflq.engine.numerics.estimates import subnormals_as_zeros
from tflq.engine.numerics.rounding import clamp, float_to_int32, round_half_away, round_half_even, wrap_int32
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
        require_zero_point_zero(node, x, y)
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


_REFERENCE = (
    Kernel("QUANTIZE", "float32 -> int8|uint8|int16|int4|uint4", prepare_float, (1, 6)),
    Kernel("QUANTIZE", "int8|uint8 -> int8|uint8|int16", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "int16 -> int8|int16|int32", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "int32 -> int8|int16", prepare_requantize, (1, 6)),
)


_MICRO = valid(
    micro(),
    Kernel("QUANTIZE", "float32 -> int8|int16", prepare_float, (1, 6)),
    Kernel("QUANTIZE", "int8 -> int8|uint8|int16|int32", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "uint8 -> int8", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "int16 -> int8|int16|int32", prepare_requantize, (1, 6)),
    Kernel("QUANTIZE", "int32 -> int8|int16", prepare_requantize, (1, 6)),
)


TYPES = "float32 -> int8|uint8|int16"


def prepare_scalar(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare per tensor, with the scale widened to float64."""
    prepared = prepare_float(node, arithmetic)
    return prepared if len(prepared.data.scale) > 1 else Prepared(prepared.shapes, prepared.data, eval_scalar)


def eval_scalar(data: FloatData, x: Array) -> Array:
    """Source: AffineQuantize. Rounding: float64 quotient, then half away. Overflow: as float_to_int32."""
    out = np.empty(x.shape, data.dtype)
    quantize_scalar(np.ascontiguousarray(x).reshape(-1), *per_tensor(data), out.reshape(-1))
    return out


def per_tensor(data: FloatData) -> tuple[float, int, int, int]:
    """Scale (widened), zero point, low and high."""
    return float(data.scale[0]), int(data.zero_point.codes[0]), *data.clamp


@in_pieces(4, x="r", out="r")
@compiled
def quantize_scalar(x: Array, scale: Real, zero_point: Int, low: Int, high: Int, out: Array) -> None:
    """Write round(x / scale) + zero point, clamped; 1-D.

    Eval guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        whole = float_to_int32(round_half_away(np.float64(x[i]) / scale))
        out[i] = clamp(wrap_int32(whole + zero_point), low, high)


#: Elements that the vector loops take at a time: floats, and codes.
BLOCK, CODE_BLOCK = 8, 16


def prepare_float_optimized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare per tensor, with the scale's reciprocal rounded to float32."""
    prepared = prepare_float(node, arithmetic)
    return prepared if len(prepared.data.scale) > 1 else Prepared(prepared.shapes, prepared.data, eval_blocks)


@filling(lambda data, x: (x.shape, data.dtype))
def eval_blocks(data: FloatData, out: Array, x: Array) -> Call:
    """Source: AffineQuantize. Rounding: float32 product, then half to even; what is left over half away."""
    values, codes = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
    at = in_whole_blocks(values.size, BLOCK)
    scale, zero_point, low, high = per_tensor(data)
    whole = quantize_block.bound(values[:at], np.float32(1.0 / scale), zero_point, low, high, codes[:at])
    return in_turn([whole, quantize_scalar.bound(values[at:], scale, zero_point, low, high, codes[at:])])


@in_pieces(4, x="r", out="r")
@compiled
def quantize_block(x: Array, inverse: Real, zero_point: Int, low: Int, high: Int, out: Array) -> None:
    """Write round(x * inverse) + zero point, clamped; 1-D. Overflow: INT32_MIN, as the conversion gives it.

    Eval guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        whole = float_to_int32(round_half_even(np.float64(np.float32(x[i] * inverse))))
        out[i] = clamp(wrap_int32(whole + zero_point), low, high)


def prepare_requantize_optimized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the real multiplier as a float64 quotient."""
    tail = prepare_requantize(node, arithmetic)
    whole = prepare_requantize(node, replace(arithmetic, requantize=arithmetic.requantize_simd))
    return Prepared(tail.shapes, TwoTables(whole.data, tail.data, CODE_BLOCK), eval_tables)


def prepare_reciprocal(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare per tensor, with the scale's reciprocal rounded to float32."""
    prepared = prepare_float(node, arithmetic)
    return prepared if len(prepared.data.scale) > 1 else Prepared(prepared.shapes, prepared.data, eval_reciprocal)


def eval_reciprocal(data: FloatData, x: Array) -> Array:
    """Source: AffineQuantize. Rounding: float32 product, then half away from zero."""
    out = np.empty(x.shape, data.dtype)
    scale, zero_point, low, high = per_tensor(data)
    inverse = np.float32(1) / np.float32(scale)
    _quantize_reciprocal(np.ascontiguousarray(x).reshape(-1), inverse, zero_point, low, high, out.reshape(-1))
    return out


@in_pieces(4, x="r", out="r")
@compiled
def _quantize_reciprocal(x: Array, inverse: Real, zero_point: Int, low: Int, high: Int, out: Array) -> None:
    """Eval guarantees: `x` and `out` have the same size."""
    for i in range(x.size):
        whole = float_to_int32(round_half_away(np.float64(np.float32(x[i] * inverse))))
        out[i] = clamp(wrap_int32(whole + zero_point), low, high)


_OPTIMIZED = (
    *valid(opt(until="tflite-2.14"), Kernel("QUANTIZE", TYPES, prepare_scalar, (1, 6))),
    *valid(
        opt(vectors=True),
        Kernel("QUANTIZE", TYPES, prepare_float_optimized, (1, 6)),
        Kernel("QUANTIZE", "int8|uint8 -> int8|uint8", prepare_requantize_optimized, (1, 6)),
    ),
    *valid(tflite(until="tflite-2.14", cpu="arm64"), Kernel("QUANTIZE", TYPES, prepare_reciprocal, (1, 6))),
)


_TF1 = valid(tf1(), Kernel("QUANTIZE", "float32 -> int8|uint8|int16", prepare_float_optimized, (1, 2)))


@dataclass(frozen=True, slots=True, eq=False)
class XnnpackFloatData:
    """Constants of float32 to integer."""

    per_unit: np.float32  # LSB of output per real unit
    zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output
    dtype: np.dtype[Any]


@meeting(needs(0, has_shape), result(is_quantized))
def takes_float(node: Node) -> bool:
    """Return whether there is one scale."""
    return True


def prepare_float_xnnpack(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute 1 / scale as a float32 quotient, which is 0 if it is subnormal."""
    x, y = node.input(0), node.outputs[0]
    dtype = CARRIER[y.type]
    per_unit = np.float32(subnormals_as_zeros(np.asarray(np.float32(1) / y.scale)))
    data = XnnpackFloatData(per_unit, y.zero_point, type_range(dtype), dtype)
    return Prepared((x.shape,), data, eval_float_xnnpack)


@filling(lambda data, x: (x.shape, data.dtype))
def eval_float_xnnpack(data: XnnpackFloatData, out: Array, x: Array) -> Call:
    """Rounding: one float32 product, then half to even. Overflow: saturates; NaN gives the highest code."""
    return _quantize_xnnpack.bound(
        np.ascontiguousarray(x).reshape(-1), data.per_unit, int(data.zero_point), *data.clamp, out.reshape(-1)
    )


@in_pieces(2, x="r", out="r")
@compiled
def _quantize_xnnpack(x: Array, per_unit: Real, zero_point: Int, low: Int, high: Int, out: Array) -> None:
    """Read subnormals as zeros. Eval guarantees: `x` and `out` have the same size."""
    lowest, highest, offset = np.float32(low - zero_point), np.float32(high - zero_point), np.int32(zero_point)
    tiny = np.float32(TINY)
    for i in range(x.size):
        scaled = np.float32((np.float32(0) if abs(x[i]) < tiny else x[i]) * per_unit)
        clamped = lowest if scaled < lowest else (scaled if scaled < highest else highest)
        out[i] = np.int32(np.rint(clamped)) + offset


def takes_same(node: Node) -> bool:
    """Return whether the ratio of scales is from 1/256 to 128."""
    x, y = node.input(0), node.outputs[0]
    if not (is_quantized(x) and is_quantized(y) and has_shape(x)):
        return False
    with np.errstate(all="ignore"):
        return bool(2.0**-8 <= x.scale / y.scale <= 128.0)


def prepare_same(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute one multiplier for both signs: a float32 quotient, rounded half to even."""
    x, y = node.input(0), node.outputs[0]
    dtype = np.dtype(x.type.label)
    multiplier = fix(x.scale / y.scale)
    data = FixedData(x.zero_point, y.zero_point, multiplier, multiplier, type_range(dtype))
    return prepare_unary(node, data, evaluate_xnnpack_slopes, dtype)


_XNNPACK = valid(
    xnnpack(),
    delegate(Kernel("QUANTIZE", "float32 -> int8|uint8", prepare_float_xnnpack, (1, 6)), takes_float),
    *(delegate(Kernel("QUANTIZE", f"{t} -> {t}", prepare_same, (1, 6)), takes_same) for t in ("int8", "uint8")),
)

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_MICRO, *_OPTIMIZED, *_TF1, *_XNNPACK)
