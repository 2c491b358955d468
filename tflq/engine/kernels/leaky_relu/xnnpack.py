"""LEAKY_RELU of 8-bit codes by XNNPACK: multipliers with 8 bits after the point.

Operands, options and refusals: tflq/engine/kernels/leaky_relu/reference.py.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitUnaryNode; XNNPACK's qs8 and qu8 vlrelu.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.delegation import delegate, has_shape, is_quantized
from tflq.engine.kernels.families.unary import prepare_unary, same_type
from tflq.engine.kernels.families.xnnpack_floats import sloping
from tflq.engine.kernels.families.xnnpack_slopes import OpData, evaluate, fix
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.leaky_relu import reference
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stages import type_range

_SMALLEST, _LARGEST, _LARGEST_NEGATIVE = 2.0**-8, 128.0, -127.99609375


def takes(node: Node) -> bool:
    """Return whether alpha is normal and 16 bits hold the multipliers. All products are float32."""
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
    """Compute multipliers as float32 products, rounded half to even."""
    x, y = same_type(node)
    ratio = x.scale / y.scale
    dtype = np.dtype(x.type.label)
    data = OpData(
        input_zero_point=x.zero_point,
        output_zero_point=y.zero_point,
        positive=fix(ratio),
        negative=fix(ratio * np.float32(node.options["alpha"])),
        clamp=type_range(dtype),
    )
    return prepare_unary(node, data, evaluate, dtype)


KERNELS = (
    *valid(
        xnnpack(), *(delegate(Kernel("LEAKY_RELU", f"{t} -> {t}", prepare, (1, 2)), takes) for t in ("uint8", "int8"))
    ),
    *valid(xnnpack("litert-2.1", cpu="x86-64"), sloping("LEAKY_RELU", reference.ROWS, 1)),
)
