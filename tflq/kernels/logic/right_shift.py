"""RIGHT_SHIFT: a / 2**b, rounded down.

| operand | shape             | types                                      |
|---------|-------------------|--------------------------------------------|
| a, b    | any, broadcasting | int8, uint8, int16, uint16, int32, uint32  |
| y       | broadcast         | as a                                       |

Shifts are held between 0 and the type's width - 1.
Source: LiteRT 2.3, right_shift.cc RightShift.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.bits import BITS_TYPES, prepare_bits
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """No constants."""
    return prepare_bits(node, eval_right_shift)


def eval_right_shift(_: None, a: Array, b: Array) -> Array:
    """Source: RightShift. Rounding: down (arithmetic shift)."""
    shifted: Array = a >> np.clip(b, 0, 8 * a.dtype.itemsize - 1)
    return shifted


KERNELS = (Kernel("RIGHT_SHIFT", f"{BITS_TYPES} {BITS_TYPES} -> {BITS_TYPES}", prepare, (1, 1)),)
