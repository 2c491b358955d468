"""QUANTIZE of the optimized resolver. Operands, options and refusals: tflq/engine/kernels/quantize/reference.py.

Per tensor; several scales are quantized as in the reference.
Vector code: float32 eight at a time by a float32 reciprocal, rounded half to even; 8-bit codes to 8-bit codes sixteen
at a time, rounded half up twice, what is left over as the reference. Scalar code, for the rest of float32 and up to
2.14 without vectors: a float64 quotient, rounded half away from zero. AArch64 up to 2.14, in both resolvers: a float32
reciprocal, rounded half away from zero, as its wheel may turn quotients into products.
Source: LiteRT 2.3 and TensorFlow 2.14 optimized_ops.h AffineQuantize, Requantize, with USE_NEON and without;
RoundToNearest; reference/quantize.h AffineQuantize.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.two_tables import TwoTables, eval_tables
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.quantize import reference as quantize
from tflq.engine.kernels.quantize.reference import FloatData
from tflq.engine.kernels.validity import opt, tflite
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.rounding import clamp, float_to_int32, round_half_away, round_half_even, wrap_int32
from tflq.typing import Array

TYPES = "float32 -> int8|uint8|int16"


def prepare_scalar(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare per tensor, with the scale widened to float64."""
    prepared = quantize.prepare_float(node, arithmetic)
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


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare per tensor, with the scale's reciprocal rounded to float32."""
    prepared = quantize.prepare_float(node, arithmetic)
    return prepared if len(prepared.data.scale) > 1 else Prepared(prepared.shapes, prepared.data, eval_blocks)


def eval_blocks(data: FloatData, x: Array) -> Array:
    """Source: AffineQuantize. Rounding: float32 product, then half to even; what is left over half away."""
    out = np.empty(x.shape, data.dtype)
    values, codes = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
    at = in_whole_blocks(values.size, BLOCK)
    scale, zero_point, low, high = per_tensor(data)
    quantize_block(values[:at], np.float32(1.0 / scale), zero_point, low, high, codes[:at])
    quantize_scalar(values[at:], scale, zero_point, low, high, codes[at:])
    return out


@in_pieces(4, x="r", out="r")
@compiled
def quantize_block(x: Array, inverse: Real, zero_point: Int, low: Int, high: Int, out: Array) -> None:
    """Write round(x * inverse) + zero point, clamped; 1-D. Overflow: INT32_MIN, as the conversion gives it.

    Eval guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        whole = float_to_int32(round_half_even(np.float64(np.float32(x[i] * inverse))))
        out[i] = clamp(wrap_int32(whole + zero_point), low, high)


def prepare_requantize(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute the real multiplier as a float64 quotient."""
    tail = quantize.prepare_requantize(node, arithmetic)
    whole = quantize.prepare_requantize(node, replace(arithmetic, requantize=arithmetic.requantize_simd))
    return Prepared(tail.shapes, TwoTables(whole.data, tail.data, CODE_BLOCK), eval_tables)


def prepare_reciprocal(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare per tensor, with the scale's reciprocal rounded to float32."""
    prepared = quantize.prepare_float(node, arithmetic)
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


KERNELS = (
    *valid(opt(until="tflite-2.14"), Kernel("QUANTIZE", TYPES, prepare_scalar, (1, 6))),
    *valid(
        opt(vectors=True),
        Kernel("QUANTIZE", TYPES, prepare_float, (1, 6)),
        Kernel("QUANTIZE", "int8|uint8 -> int8|uint8", prepare_requantize, (1, 6)),
    ),
    *valid(tflite(until="tflite-2.14", cpu="arm64"), Kernel("QUANTIZE", TYPES, prepare_reciprocal, (1, 6))),
)
