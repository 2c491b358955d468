"""ADD: y = a + b.

| operand | shape             | types                                              | quantization                    |
|---------|-------------------|----------------------------------------------------|---------------------------------|
| a, b    | any, broadcasting | float32, float16, int32, int64, int16, uint8, int8 | per tensor; int16: zero point 0 |
| y       | broadcast         | as a                                               | per tensor; int16: zero point 0 |

Options: fused_activation_function; pot_scale_int16 (int16 whose scales are powers of two: shifts, no multipliers).
int16 without quantization is plain arithmetic that wraps.
Source: LiteRT 2.3, add.cc Prepare; reference/add.h AddElementwise, Add, BroadcastAdd6DSlow.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.kernels.families.binary import both, prepare_clamped
from tflq.kernels.families.scaled_sum import has_pot_scales, prepare_general, prepare_pot, without_broadcast
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic

prepare_number = prepare_clamped(np.add)
prepare_quantized = partial(prepare_general, sign=1)


def prepare_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Plain where nothing is quantized, by shifts where asked for and possible, general otherwise."""
    operands = both(node)
    if not any(operand.is_quantized for operand in operands):
        return prepare_number(node, arithmetic)
    for operand in operands:
        node.check(operand.is_quantized, "is not quantized, but others are", operand)
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
    if not has_pot_scales(node):
        return prepare_quantized(node, arithmetic)
    without_broadcast(node)
    return prepare_pot(node, sign=1)


KERNELS = (
    *(Kernel("ADD", f"{t} {t} -> {t}", prepare_quantized, (1, 6)) for t in ("uint8", "int8")),
    Kernel("ADD", "int16 int16 -> int16", prepare_int16, (1, 6)),
    *(Kernel("ADD", f"{t} {t} -> {t}", prepare_number, (1, 6)) for t in ("float32", "float16", "int32", "int64")),
)
