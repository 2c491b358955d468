"""QUANTIZE by XNNPACK: float32 to 8 bits through a reciprocal, and 8 bits to the same type with 8 fractional bits.

Operands, options and refusals: tflq/engine/kernels/quantize/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK's f32-qs8 and qs8 vcvt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized
from tflq.engine.kernels.families.unary import prepare_unary
from tflq.engine.kernels.families.xnnpack_slopes import OpData as FixedData
from tflq.engine.kernels.families.xnnpack_slopes import evaluate, fix
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.flushing import TINY, subnormals_as_zeros
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import CARRIER
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class FloatData:
    """Constants of float32 to integer."""

    per_unit: np.float32  # LSB of output per real unit
    zero_point: ZeroPoint  # LSB of output
    clamp: Clamp  # LSB of output
    dtype: np.dtype[Any]


def takes_float(node: Node) -> bool:
    """Return whether there is one scale."""
    return is_quantized(node.outputs[0]) and has_shape(node.input(0))


def prepare_float(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Compute 1 / scale as a float32 quotient, which is 0 if it is subnormal."""
    x, y = node.input(0), node.outputs[0]
    dtype = CARRIER[y.type]
    per_unit = np.float32(subnormals_as_zeros(np.asarray(np.float32(1) / y.scale)))
    data = FloatData(per_unit, y.zero_point, type_range(dtype), dtype)
    return Prepared((x.shape,), data, eval_float)


def eval_float(data: FloatData, x: Array) -> Array:
    """Rounding: one float32 product, then half to even. Overflow: saturates; NaN gives the highest code."""
    out = np.empty(x.shape, data.dtype)
    _quantize(np.ascontiguousarray(x).reshape(-1), data.per_unit, int(data.zero_point), *data.clamp, out.reshape(-1))
    return out


@in_pieces(2, x="r", out="r")
@compiled
def _quantize(x: Array, per_unit: Real, zero_point: Int, low: Int, high: Int, out: Array) -> None:
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
    return prepare_unary(node, data, evaluate, dtype)


KERNELS = valid(
    xnnpack(),
    delegate(Kernel("QUANTIZE", "float32 -> int8|uint8", prepare_float, (1, 6)), takes_float),
    *(delegate(Kernel("QUANTIZE", f"{t} -> {t}", prepare_same, (1, 6)), takes_same) for t in ("int8", "uint8")),
)
