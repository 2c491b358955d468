"""BITWISE_XOR: bit by bit, whether two integers differ.

| operand | shape             | types                                      |
|---------|-------------------|--------------------------------------------|
| a, b    | any, broadcasting | int8, uint8, int16, uint16, int32, uint32  |
| y       | broadcast         | as a                                       |

Source: LiteRT 2.3, bitwise_xor.cc.
"""

from __future__ import annotations

from tflq.kernels.families.bits import BITS_TYPES, prepare_bits
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """No constants."""
    return prepare_bits(node, eval_xor)


def eval_xor(_: None, a: Array, b: Array) -> Array:
    """Source: BitwiseXor."""
    return a ^ b


KERNELS = (Kernel("BITWISE_XOR", f"{BITS_TYPES} {BITS_TYPES} -> {BITS_TYPES}", prepare, (1, 1)),)
