"""Logic and bits: LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT, BITWISE_XOR, RIGHT_SHIFT, STABLEHLO_AND, STABLEHLO_SHIFT_LEFT.

| operator             | operands; y as the first         | types                                             |
|----------------------|----------------------------------|---------------------------------------------------|
| LOGICAL_AND, _OR     | a, b: any, broadcasting          | bool                                              |
| LOGICAL_NOT          | x: any                           | bool                                              |
| BITWISE_XOR          | a, b: any, broadcasting          | int8, uint8, int16, uint16, int32, uint32         |
| RIGHT_SHIFT          | a, b: any, broadcasting          | as BITWISE_XOR                                    |
| STABLEHLO_AND        | a, b: equal                      | as BITWISE_XOR, and int64, uint64, bool           |
| STABLEHLO_SHIFT_LEFT | a; b with at least as many elements | int8, int16, int32                             |

RIGHT_SHIFT: a / 2**b, rounded down; shifts are clipped to 0 and the type's width - 1.
STABLEHLO_SHIFT_LEFT: a times 2**b, wrapping; shifts by less than 0 or more than 31 are undefined.
BUILTIN_REF has no STABLEHLO_ operator: their kernels are those of the full resolver.
Source: LiteRT 2.3, logical.cc Prepare, LogicalImpl; elementwise.cc LogicalNotEval; bitwise_xor.cc; right_shift.cc
RightShift; stablehlo_elementwise.h ApplyComputation (kAnd); stablehlo_shift_left.cc.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tflq.engine.kernels.families.binary import prepare_plain
from tflq.engine.kernels.families.bits import BITS_TYPES, prepare_bits
from tflq.engine.kernels.families.elementwise import INTEGERS, kernels
from tflq.engine.kernels.families.unary import prepare_function
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array


def prepare_xor(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    return prepare_bits(node, eval_xor)


def eval_xor(_: None, a: Array, b: Array) -> Array:
    """Source: BitwiseXor."""
    return a ^ b


def prepare_right_shift(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare without constants."""
    return prepare_bits(node, eval_right_shift)


def eval_right_shift(_: None, a: Array, b: Array) -> Array:
    """Source: RightShift. Rounding: down (arithmetic shift)."""
    shifted: Array = a >> np.clip(b, 0, 8 * a.dtype.itemsize - 1)
    return shifted


def prepare_shift_left(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the shapes alone."""
    a, b = node.input(0), node.input(1)
    if prod(b.shape) < prod(a.shape):
        raise UndefinedResultError(node.op, "the source reads behind the end of a smaller b")
    return Prepared((a.shape,), None, eval_shift_left)


def eval_shift_left(_: None, a: Array, b: Array) -> Array:
    """Source: EvalImpl, in int32. Overflow: bits beyond the type are lost."""
    shifts = b.reshape(-1)[: a.size].astype(np.int32).reshape(a.shape)
    if ((shifts < 0) | (shifts > 31)).any():
        raise UndefinedResultError("STABLEHLO_SHIFT_LEFT", "a shift outside [0, 31]")
    return np.left_shift(a.astype(np.int32), shifts).astype(a.dtype)


KERNELS = (
    Kernel("BITWISE_XOR", f"{BITS_TYPES} {BITS_TYPES} -> {BITS_TYPES}", prepare_xor, (1, 1)),
    Kernel("LOGICAL_AND", "bool bool -> bool", prepare_plain(np.logical_and), (1, 1)),
    Kernel("LOGICAL_NOT", "bool -> bool", prepare_function(np.logical_not), (1, 1)),
    Kernel("LOGICAL_OR", "bool bool -> bool", prepare_plain(np.logical_or), (1, 1)),
    Kernel("RIGHT_SHIFT", f"{BITS_TYPES} {BITS_TYPES} -> {BITS_TYPES}", prepare_right_shift, (1, 1)),
    *kernels("STABLEHLO_AND", np.bitwise_and, INTEGERS),
    *tuple(
        Kernel("STABLEHLO_SHIFT_LEFT", f"{t} {t} -> {t}", prepare_shift_left, (1, 1))
        for t in ("int8", "int16", "int32")
    ),
)
