"""ADD, SUB of 16-bit codes in 2.3: always by shifts, whatever the options say; broadcast operands are refused.

Operands, options and other refusals: tflq/kernels/add_sub/add.py, sub.py.
Source: TensorFlow 2.3 lite/kernels/add.cc, sub.cc Prepare.
"""

from __future__ import annotations

from tflq.kernels.families.binary import both
from tflq.kernels.families.scaled_sum import prepare_pot, without_broadcast
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.scaling import checked_log2


def by_shifts(node: Node, sign: int) -> Prepared:
    """Zero points 0, scales powers of two, operands of one shape."""
    for operand in both(node):
        node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
        is_pot = bool(operand.scale > 0) and checked_log2(operand.scale)[1]
        node.check(is_pot, "scale", operand, expected="a power of two", got=operand.scale)
    without_broadcast(node)
    return prepare_pot(node, sign)


def prepare_add(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a sum."""
    return by_shifts(node, 1)


def prepare_sub(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare a difference."""
    return by_shifts(node, -1)


KERNELS = valid(
    opt(until="tf-2.3", vectors=True),
    Kernel("ADD", "int16 int16 -> int16", prepare_add, (1, 2)),
    Kernel("SUB", "int16 int16 -> int16", prepare_sub, (1, 3)),
)
