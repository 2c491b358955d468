"""SUB: y = a - b.

| operand | shape             | types                                     | quantization                    |
|---------|-------------------|-------------------------------------------|---------------------------------|
| a, b    | any, broadcasting | float32, int32, int64, int16, uint8, int8 | per tensor; int16: zero point 0 |
| y       | broadcast         | as a                                      | per tensor; int16: zero point 0 |

Options: fused_activation_function; pot_scale_int16 (int16 whose scales are powers of two: shifts, no multipliers).
Source: LiteRT 2.3, sub.cc PrepareGeneralSubOp; reference/sub.h SubElementwise, SubWithActivation, BroadcastSubSlow.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.binary import both, prepare_clamped
from tflq.kernels.families.scaled_sum import has_pot_scales, prepare_general, prepare_pot
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import type_range

prepare_number = prepare_clamped(np.subtract)


def prepare_quantized(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Zero points must lie inside the type's range."""
    for operand in both(node):
        low, high = type_range(operand.type.label)
        node.check(low <= operand.zero_point <= high, "zero point", operand, got=operand.zero_point)
    return prepare_general(node, arithmetic, sign=-1)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """By shifts where asked for and possible, general otherwise."""
    for operand in both(node):
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    return prepare_pot(node, sign=-1) if has_pot_scales(node) else prepare_quantized(node, arithmetic)


KERNELS = (
    *(Kernel("SUB", f"{t} {t} -> {t}", prepare_quantized, (1, 5)) for t in ("uint8", "int8")),
    Kernel("SUB", "int16 int16 -> int16", prepare_int16, (1, 5)),
    *(Kernel("SUB", f"{t} {t} -> {t}", prepare_number, (1, 5)) for t in ("float32", "int32", "int64")),
)
