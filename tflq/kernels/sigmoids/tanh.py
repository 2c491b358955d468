"""TANH: y = tanh(x).

| operand | shape | types                                          | quantization                                  |
|---------|-------|------------------------------------------------|-----------------------------------------------|
| x       | any   | float32, float16, bfloat16, uint8, int8, int16 | per tensor; int16: zero point 0               |
| y       | as x  | as x                                           | per tensor; int16: scale 2**-15, zero point 0 |

Source: LiteRT 2.3, activations.cc TanhPrepare, TanhEval; reference_integer_ops::Tanh (int16).
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.narrow_floats import narrow_floats
from tflq.kernels.families.unary import check_zero_points, prepare_tabulated, same_type
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.libm import tanhf
from tflq.numerics.scaling import checked_log2
from tflq.numerics.sigmoid_int16 import sigmoid_multiplier, tanh_int16_into


def prepare_8bit(node: Node, arithmetic: Arithmetic) -> Prepared:
    """A table of 256 codes."""
    return prepare_tabulated(node, tanhf)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The published table of the sigmoid."""
    x, y = same_type(node)
    check_zero_points(node)
    node.check(bool(y.scale > 0) and checked_log2(y.scale) == (-15, True), "scale", y, expected="2**-15", got=y.scale)
    return Prepared((x.shape,), sigmoid_multiplier(x.scale, 1), eval_int16)


def eval_int16(multiplier: tuple[int, int], x: Array) -> Array:
    """Source: reference_integer_ops::Tanh. Rounding: as in tanh_int16."""
    out = np.empty(x.shape, np.int16)
    tanh_int16_into(np.ascontiguousarray(x).reshape(-1), *multiplier, out.reshape(-1))
    return out


KERNELS = (
    *narrow_floats("TANH", tanhf, (1, 3)),
    *(Kernel("TANH", f"{t} -> {t}", prepare_8bit, (1, 3)) for t in ("uint8", "int8")),
    Kernel("TANH", "int16 -> int16", prepare_int16, (1, 3)),
)
