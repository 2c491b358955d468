"""LOGISTIC and TANH of r1.15 on int16: gemmlowp's fixed-point functions in 16 bits, of an input in Q3.12.

| operand | shape | types | quantization                                        |
|---------|-------|-------|-----------------------------------------------------|
| x       | any   | int16 | scale 2**-12 (TANH also 2**-11), zero point 0       |
| y       | as x  | int16 | scale 2**-15, zero point 0                          |

Source: TensorFlow r1.15 lite/kernels/activations.cc SigmoidPrepare, TanhPrepare; reference_ops.h Logistic, Tanh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.unary import check_zero_points, same_type
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import Shift
from tflq.engine.numerics.elementary import logistic_into, tanh_into
from tflq.engine.numerics.scaling import check_log2
from tflq.typing import Array

INTEGER_BITS = 3


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The function, and by how many bits codes are shifted before it."""

    function: Callable[..., None]  # (Q3.12, integer bits, width, out in Q0.15)
    shift: Shift  # to the left


def prepare_with(function: Callable[..., None], largest_shift: int) -> Callable[[Node, Arithmetic], Prepared]:
    """Return a prepare for a function of Q3.12 that takes inputs up to `largest_shift` bits coarser."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = same_type(node)
        check_zero_points(node)
        shift = Shift(_log2(node, 0) + 12)
        node.check(0 <= shift <= largest_shift, "scale", x, expected=f"2**-12 to 2**{largest_shift - 12}", got=x.scale)
        node.check(_log2(node, 1) == -15, "scale", y, expected="2**-15", got=y.scale)
        return Prepared((x.shape,), OpData(function, shift), evaluate)

    return prepare


def _log2(node: Node, which: int) -> int:
    operand = (node.input(0), node.outputs[0])[which]
    exponent, is_pot = check_log2(operand.scale)
    node.check(is_pot, "scale must be a power of two", operand, got=operand.scale)
    return exponent


def evaluate(data: OpData, x: Array) -> Array:
    """Source: Logistic, Tanh (int16). Rounding: as in the functions. Overflow: the shift saturates."""
    shifted = np.clip(x.astype(np.int32) << data.shift, -32768, 32767).astype(np.int16)
    out = np.empty(x.shape, np.int16)
    data.function(np.ascontiguousarray(shifted).reshape(-1), INTEGER_BITS, 16, out.reshape(-1))
    return out


KERNELS = valid(
    tf1(),
    Kernel("LOGISTIC", "int16 -> int16", prepare_with(logistic_into, 0), (1, 2)),
    Kernel("TANH", "int16 -> int16", prepare_with(tanh_into, 1), (1, 2)),
)
