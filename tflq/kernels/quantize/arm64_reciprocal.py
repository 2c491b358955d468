"""QUANTIZE of float32 by a float32 reciprocal of the scale, rounded half away from zero.

Operands, options and refusals: tflq/kernels/quantize/reference.py; several scales are quantized as there.
Source: TensorFlow 2.14 reference/quantize.h AffineQuantize, as the AArch64 wheel has it: built with float arithmetic
that may turn quotients into products.
"""

from __future__ import annotations

import numpy as np

from tflq.jit.compiled import Int, Real, compiled
from tflq.jit.pieces import in_pieces
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.quantize import reference as quantize
from tflq.kernels.quantize.optimized_scalar import TYPES, per_tensor
from tflq.kernels.quantize.reference import FloatData
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.rounding import clamp, float_to_int32, round_half_away, wrap_int32


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Per tensor; the reciprocal of the scale is rounded to float32."""
    prepared = quantize.prepare_float(node, arithmetic)
    return prepared if len(prepared.data.scale) > 1 else Prepared(prepared.shapes, prepared.data, eval_reciprocal)


def eval_reciprocal(data: FloatData, x: Array) -> Array:
    """Source: AffineQuantize. Rounding: float32 product, then half away from zero."""
    out = np.empty(x.shape, data.dtype)
    scale, zero_point, low, high = per_tensor(data)
    inverse = np.float32(1) / np.float32(scale)
    _quantize(np.ascontiguousarray(x).reshape(-1), inverse, zero_point, low, high, out.reshape(-1))
    return out


@in_pieces(4, x="r", out="r")
@compiled
def _quantize(x: Array, inverse: Real, zero_point: Int, low: Int, high: Int, out: Array) -> None:
    """Eval guarantees: `x` and `out` have the same size."""
    for i in range(x.size):
        whole = float_to_int32(round_half_away(np.float64(np.float32(x[i] * inverse))))
        out[i] = clamp(wrap_int32(whole + zero_point), low, high)


KERNELS = valid(tflite(until="tflite-2.14", cpu="arm64"), Kernel("QUANTIZE", TYPES, prepare_float, (1, 6)))
