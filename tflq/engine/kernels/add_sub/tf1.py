"""ADD and SUB of r1.15 on int16: scales are powers of two, at most one input is shifted, nothing broadcasts.

| operand | shape             | types | quantization                                                 |
|---------|-------------------|-------|--------------------------------------------------------------|
| a, b    | any, equally many | int16 | powers of two, one the output's, the other finer; zero point 0 |
| y       | as a              | int16 | a power of two, zero point 0                                 |

Options: fused_activation_function.
Source: TensorFlow r1.15 lite/kernels/add.cc, sub.cc Prepare; reference_ops.h Add (int16), Sub16.
"""

from __future__ import annotations

from collections.abc import Callable

from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.scaled_sum import prepare_pot, without_broadcast
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.scaling import check_log2


def prepare_with(sign: int) -> Callable[[Node, Arithmetic], Prepared]:
    """Return a prepare for a + sign * b."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        for operand in both(node):
            node.check(operand.is_quantized, "is not quantized", operand)
            node.check(operand.zero_point == 0, "zero point", operand, expected=0, got=operand.zero_point)
            node.check(check_log2(operand.scale)[1], "scale must be a power of two", operand, got=operand.scale)
        without_broadcast(node)
        return prepare_pot(node, sign)

    return prepare


KERNELS = valid(
    tf1(),
    Kernel("ADD", "int16 int16 -> int16", prepare_with(1), (1, 2)),
    Kernel("SUB", "int16 int16 -> int16", prepare_with(-1), (1, 2)),
)
