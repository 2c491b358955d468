"""QUANTIZE of float32 without vector code: a float64 quotient, rounded half away from zero.

Operands, options and refusals: tflq/kernels/quantize/reference.py; several scales are quantized as there.
Source: LiteRT 2.3 and TensorFlow 2.14 optimized_ops.h AffineQuantize, without USE_NEON.
"""

from __future__ import annotations

import numpy as np

from tflq.jit.compiled import Int, Real, compiled
from tflq.jit.pieces import in_pieces
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.quantize import reference as quantize
from tflq.kernels.quantize.reference import FloatData
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.rounding import clamp, float_to_int32, round_half_away, wrap_int32

TYPES = "float32 -> int8|uint8|int16"


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Per tensor; the scale is widened to float64."""
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
    """out = round(x / scale) + zero point, clamped; 1-D.

    Eval guarantees: `x` and `out` have the same size.
    """
    for i in range(x.size):
        whole = float_to_int32(round_half_away(np.float64(x[i]) / scale))
        out[i] = clamp(wrap_int32(whole + zero_point), low, high)


KERNELS = valid(opt(until="tflite-2.14"), Kernel("QUANTIZE", TYPES, prepare_float, (1, 6)))
