"""MUL of r1.15 on int16: a product of Q0.15 fractions.

| operand | shape                 | types | quantization  |
|---------|-----------------------|-------|---------------|
| a, b    | any, equally many     | int16 | not looked at |
| y       | as a                  | int16 | not looked at |

Options: fused_activation_function is ignored.
Source: TensorFlow r1.15 lite/kernels/mul.cc EvalQuantized; reference_ops.h Mul (int16).
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.geometry.broadcast import broadcast_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.fixedpoint import doubling_high_mul
from tflq.errors import UndefinedResultError
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the shape alone."""
    a, b, _ = both(node)
    if np.prod(a.shape) != np.prod(b.shape):
        raise UndefinedResultError("Mul", f"int16 of {list(a.shape)} and {list(b.shape)} reads beyond the smaller one")
    shape = broadcast_shape(node, a, b)
    return Prepared((shape,), shape, evaluate)


def evaluate(shape: Shape, a: Array, b: Array) -> Array:
    """Source: Mul (int16). Rounding: half up. Overflow: -1 times -1 saturates."""
    out = np.empty(shape, np.int16)
    _multiply(np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1), out.reshape(-1))
    return out


@in_pieces(2, a="r", b="r", out="r")
@compiled
def _multiply(a: Array, b: Array, out: Array) -> None:
    """Prepare guarantees: `a`, `b` and `out` have the same size."""
    for i in range(out.size):
        out[i] = doubling_high_mul(a[i], b[i], 16)


KERNELS = valid(tf1(), Kernel("MUL", "int16 int16 -> int16", prepare, (1, 3)))
