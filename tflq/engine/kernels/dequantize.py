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

DEQUANTIZE by vector code: eight at a time x * scale + (-zero point * scale), what is left over as the reference.

Operands, options and refusals; several scales are dequantized as there. Source: LiteRT 2.3 optimized_ops.h
Dequantize, ScaleWithNewZeroPoint with USE_NEON; fused on AArch64.

DEQUANTIZE of r1.15 on 8 bits: by vector code in both resolvers, as the optimized kernel that shares the name.

Source: TensorFlow r1.15 lite/kernels/dequantize.cc; optimized_ops.h Dequantize with USE_NEON.

DEQUANTIZE of 8-bit codes by XNNPACK: (x - zero point) * scale, as the reference has it.

The delegate never passes int8 constants on to XNNPACK: it unpacks them with the optimized kernel, or leaves them to it.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode, PrepareOpsToDelegate; quantization_util.cc DequantizeInt8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import compiled, writes
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.checks import require_zero_point_zero
from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized, is_static
from tflq.engine.kernels.families.custom_options import flag, options_of, real
from tflq.engine.kernels.families.unary import prepare_unary
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks
from tflq.engine.kernels.geometry.axes import along
from tflq.engine.kernels.kernel import Call, Kernel, Node, Prepared, filling, valid
from tflq.engine.kernels.validity import opt, tf1, xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoints
from tflq.engine.numerics.estimates import MultiplyAdd
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
        require_zero_point_zero(node, x)
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


_REFERENCE = (
    Kernel("DEQUANTIZE", "int8|uint8|int16|int4|uint4|int2 -> float32", prepare_dequantize, (1, 9)),
    Kernel("DEQUANTIZE", "float16 -> float32", prepare_widen, (1, 9)),
    Kernel("NumericVerify", "int8|uint8|int16 float32 -> any", prepare_verify_codes, (1, 1), makes=TensorType.FLOAT32),
    Kernel("NumericVerify", "float16 float32 -> any", prepare_verify_half, (1, 1), makes=TensorType.FLOAT32),
)


#: Elements that the vector loop takes at a time.
BLOCK = 8


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """x * scale + shift."""

    scale: np.float32  # real units per LSB
    shift: np.float32  # -zero point * scale, real units, rounded once
    multiply_add: MultiplyAdd


@dataclass(frozen=True, slots=True, eq=False)
class OptimizedData:
    """Constants of the per-tensor form."""

    whole: Prepared  # for whole blocks
    rest: Prepared  # the reference, for what is left over


def prepare_dequantize_optimized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Round -zero point * scale, a float64 product, to float32."""
    x = node.input(0)
    rest = prepare_dequantize(node, arithmetic)
    if x.quantization is not None and len(x.quantization.scale) > 1:
        return rest
    shift = np.float32(-x.zero_point * np.float64(x.scale))
    whole = prepare_unary(node, Affine(x.scale, shift, arithmetic.multiply_add), eval_affine, CARRIER[x.type])
    return Prepared(rest.shapes, OptimizedData(whole, rest), eval_blocks)


def eval_affine(data: Affine, x: Array) -> Array:
    """Source: ScaleWithNewZeroPoint. Rounding: float32, by `multiply_add`."""
    return data.multiply_add(x.astype(np.float32), data.scale, data.shift)


def eval_blocks(data: OptimizedData, x: Array) -> Array:
    """Source: Dequantize. Rounding: whole blocks as eval_affine, what is left over once."""
    codes = np.ascontiguousarray(x).reshape(-1)
    at = in_whole_blocks(codes.size, BLOCK)
    out = np.empty(x.shape, np.float32)
    flat = out.reshape(-1)
    flat[:at] = data.whole.eval(data.whole.data, codes[:at])
    if at < codes.size:
        flat[at:] = data.rest.eval(data.rest.data, codes[at:])
    return out


_OPTIMIZED = valid(
    opt(vectors=True),
    Kernel("DEQUANTIZE", "int8|uint8|int16|int4|uint4 -> float32", prepare_dequantize_optimized, (1, 9)),
)


_TF1 = valid(tf1(), Kernel("DEQUANTIZE", "int8|uint8|int16 -> float32", prepare_dequantize_optimized, (1, 4)))


def takes(node: Node) -> bool:
    """Return whether there is one scale, and the operand is no int8 constant."""
    x = node.input(0)
    return is_quantized(x) and has_shape(x) and not (x.type == TensorType.INT8 and is_static(x))


_XNNPACK = valid(xnnpack(), delegate(Kernel("DEQUANTIZE", "int8|uint8 -> float32", prepare_dequantize, (1, 9)), takes))

#: The rows of all operators above.
KERNELS = (*_REFERENCE, *_OPTIMIZED, *_TF1, *_XNNPACK)
