"""DEQUANTIZE: y = (x - zero point) * scale. NumericVerify: the difference to floats that x represents.

| operand   | shape | types                          | quantization                   |
|-----------|-------|--------------------------------|--------------------------------|
| x         | any   | int8, uint8, int4, uint4, int2 | per tensor or per axis         |
|           |       | int16; float16                 | per tensor, zero point 0; none |
| reference | as x  | NumericVerify: float32         |                                |
| y         | as x  | float32                        | none                           |

NumericVerify: x has 8 or 16 bits; the output is float32, regardless of the declared type. Options: tolerance,
log_if_failed. With a tolerance of 0.1 or more, in LSB of x, log_if_failed makes a difference beyond it fail the run.
Source: LiteRT 2.3, dequantize.h DequantizeImpl, PerChannelDequantizeImpl; reference/dequantize.h Dequantize;
numeric_verify.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.custom_options import flag, options_of, real
from tflq.engine.kernels.families.unary import prepare_unary
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.geometry.axes import along
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoints
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """One entry a channel, channels in the middle of (outer, channels, inner)."""

    scale: Array  # real units per LSB; float64 per tensor, float32 per axis: the product is rounded once either way
    zero_point: ZeroPoints  # LSB of input
    rows: tuple[int, int, int]


def prepare_dequantize(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare per axis if there are several scales: a float32 product; else a float64 one that is rounded."""
    x = node.input(0)
    channels = along(node, x, x.shape)
    if x.type == TensorType.INT16:
        node.check(channels.count == 1, "is quantized per axis, which int16 cannot be", x)
        node.check(x.zero_point == 0, "zero point", x, expected=0, got=x.zero_point)
    zero_points = ZeroPoints(channels.zero_point)
    if channels.count == 1:
        data = OpData(channels.scale.astype(np.float64), zero_points, (1, 1, -1))
        return prepare_unary(node, data, eval_dequantize, CARRIER[x.type])
    return Prepared((x.shape,), OpData(channels.scale, zero_points, channels.rows), eval_dequantize)


@filling(lambda data, x: (x.shape, np.float32))
def eval_dequantize(data: OpData, out: Array, x: Array) -> Call:
    """Source: Dequantize. Rounding: the product, once, to float32."""
    rows = np.ascontiguousarray(x).reshape(data.rows), out.reshape(data.rows)
    return _dequantize.bound(rows[0], data.scale, data.zero_point.codes, rows[1])


@writes("out")
@in_pieces(x="oci", out="oci", scale="c", zero_point="c")
@compiled
def _dequantize(x: Array, scale: Array, zero_point: Array, out: Array) -> None:
    """Prepare guarantees: `x` is (outer, channels, inner), `scale` and `zero_point` have an entry for every channel.
    Eval guarantees: `out` has the shape of `x`.
    """
    for outer in range(x.shape[0]):
        for c in range(x.shape[1]):
            for inner in range(x.shape[2]):
                # |x - zero point| < 2**24, so that its float64 product with a float32 scale is exact before rounding
                out[outer, c, inner] = np.float32(np.float64(np.int64(x[outer, c, inner]) - zero_point[c]) * scale[c])


def prepare_widen(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare float16 to float32."""
    return Prepared((node.input(0).shape,), None, eval_widen)


def eval_widen(data: None, x: Array) -> Array:
    """Source: Dequantize (half). Rounding: none."""
    return x.astype(np.float32)


_SMALLEST_TOLERANCE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class VerifyData:
    """How to dequantize, and the largest difference that passes; None if all do."""

    dequantize: Prepared
    largest: np.float32 | None


def prepare_verify_codes(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare integer types."""
    return prepare_verify(node, prepare_dequantize(node, arithmetic))


def prepare_verify_half(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare float16, which has no scale: if differences are checked, only equality passes."""
    return prepare_verify(node, prepare_widen(node, arithmetic))


def prepare_verify(node: Node, dequantize: Prepared) -> Prepared:
    """Multiply the tolerance by the scale in float32."""
    x, reference = node.input(0), node.input(1)
    enough = int(np.prod(reference.shape)) >= int(np.prod(x.shape))
    node.check(enough, "number of elements", reference, expected=x.shape, got=reference.shape)
    options = options_of(node)
    tolerance = np.float32(real(options, "tolerance"))
    watched = flag(options, "log_if_failed") and float(tolerance) >= _SMALLEST_TOLERANCE
    return Prepared((x.shape,), VerifyData(dequantize, tolerance * x.scale if watched else None), eval_verify)


def eval_verify(data: VerifyData, x: Array, reference: Array) -> Array:
    """Source: Eval. Rounding: one float32 difference."""
    y = data.dequantize.eval(data.dequantize.data, x)
    assert isinstance(y, np.ndarray)  # DEQUANTIZE has one output
    difference = np.asarray(y - reference.reshape(-1)[: x.size].reshape(x.shape))
    if data.largest is not None and (abs(difference) > data.largest).any():
        worst = np.nanmax(abs(difference))
        raise ArithmeticError(f"differs by {worst} from the reference, more than {data.largest}")
    return difference


KERNELS = (
    Kernel("DEQUANTIZE", "int8|uint8|int16|int4|uint4|int2 -> float32", prepare_dequantize, (1, 9)),
    Kernel("DEQUANTIZE", "float16 -> float32", prepare_widen, (1, 9)),
    Kernel("NumericVerify", "int8|uint8|int16 float32 -> any", prepare_verify_codes, (1, 1), makes=TensorType.FLOAT32),
    Kernel("NumericVerify", "float16 float32 -> any", prepare_verify_half, (1, 1), makes=TensorType.FLOAT32),
)
