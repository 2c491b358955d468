"""LEAKY_RELU of 8-bit codes by XNNPACK: multipliers with 8 bits after the point.

Operands, options and refusals: tflq/kernels/leaky_relu/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK's qs8 and qu8 vlrelu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.kernels.delegation import delegate, has_shape, is_quantized
from tflq.kernels.families.unary import prepare_unary, same_type
from tflq.kernels.families.xnnpack_floats import sloping
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.leaky_relu import reference
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.codes import Clamp, ZeroPoint
from tflq.numerics.multiplier import FixedMultiplier
from tflq.numerics.stages import type_range

#: Bits after the point.
BITS = 8

_SMALLEST, _LARGEST, _LARGEST_NEGATIVE = 2.0**-8, 128.0, -127.99609375


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    input_zero_point: ZeroPoint  # LSB of input
    output_zero_point: ZeroPoint  # LSB of output
    positive: FixedMultiplier  # 2**-8 LSB of output per LSB of input, for x >= zero point
    negative: FixedMultiplier  # the same, times alpha
    clamp: Clamp  # LSB of output


def takes(node: Node) -> bool:
    """A normal alpha, and multipliers that 16 bits hold. All products are float32."""
    x, y = same_type(node)
    alpha = np.float32(node.options["alpha"])
    if not (is_quantized(x) and is_quantized(y) and has_shape(x) and _is_normal(alpha)):
        return False
    if not (_is_normal(x.scale) and _is_normal(y.scale)):
        return True
    positive = x.scale / y.scale
    negative = positive * alpha
    return bool(
        _SMALLEST <= positive <= _LARGEST and _LARGEST_NEGATIVE <= negative <= _LARGEST and abs(negative) >= _SMALLEST
    )


def _is_normal(x: np.float32) -> bool:
    return bool(np.isfinite(x) and abs(x) >= np.finfo(np.float32).tiny)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Multipliers are float32 products, rounded half to even."""
    x, y = same_type(node)
    ratio = x.scale / y.scale
    dtype = np.dtype(x.type.label)
    data = OpData(
        input_zero_point=x.zero_point,
        output_zero_point=y.zero_point,
        positive=fixed(ratio),
        negative=fixed(ratio * np.float32(node.options["alpha"])),
        clamp=type_range(dtype),
    )
    return prepare_unary(node, data, evaluate, dtype)


def fixed(real: np.float32) -> FixedMultiplier:
    """A real multiplier in steps of 1/256, half to even."""
    return FixedMultiplier(int(np.rint(np.float32(1 << BITS) * real)))


def evaluate(data: OpData, x: Array) -> Array:
    """Rounding: half up, of the product and the zero point together. Overflow: none."""
    centred = x.astype(np.int64) - data.input_zero_point
    scaled = centred * np.where(centred >= 0, data.positive, data.negative)
    codes = (scaled + (1 << BITS - 1) >> BITS) + data.output_zero_point
    clamped: Array = np.clip(codes, *data.clamp).astype(x.dtype)
    return clamped


KERNELS = (
    *valid(
        xnnpack(), *(delegate(Kernel("LEAKY_RELU", f"{t} -> {t}", prepare, (1, 2)), takes) for t in ("uint8", "int8"))
    ),
    *valid(xnnpack("litert-2.3", cpu="x86-64"), sloping("LEAKY_RELU", reference.KERNELS, 1)),
)
