"""RSQRT of TensorFlow Lite Micro: 16 bits are computed with the integer inverse square root, not with a table.

| operand | shape | types | quantization             |
|---------|-------|-------|--------------------------|
| x       | any   | int16 | per tensor, zero point 0 |
| y       | as x  | as x  | per tensor, zero point 0 |

Source: tflite-micro (October 2026), elementwise.cc PrepareAbsRsqrt, RsqrtEvalQuantized.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.quantized_unary import check_elementwise, refuse_negative
from tflq.engine.kernels.families.unary import same_type
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.roots.reference import inverse_multiplier, inverse_roots
from tflq.engine.kernels.validity import micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.multiplier import Multiplier
from tflq.engine.numerics.stages import type_range
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class OpData:
    """The output's scaling of inverse roots with 20 fractional bits."""

    multiplier: Multiplier  # Q31


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require zero points 0."""
    x, y = same_type(node)
    check_elementwise(node)
    return Prepared((x.shape,), OpData(inverse_multiplier(x, y, arithmetic)), eval_int16)


def eval_int16(data: OpData, x: Array) -> Array:
    """Source: RsqrtEvalQuantized. Rounding: by inverse_roots. Overflow: saturates."""
    refuse_negative("Rsqrt", x, 0)
    out = np.empty(x.shape, np.int16)
    codes = np.ascontiguousarray(x).reshape(-1)
    inverse_roots(codes, 0, *data.multiplier, 0, *type_range(np.int16), out.reshape(-1))
    return out


KERNELS = valid(micro(), Kernel("RSQRT", "int16 -> int16", prepare_int16, (1, 3)))
