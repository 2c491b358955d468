"""DENSIFY: a constant that is stored sparsely, as a dense tensor.

| operand | shape | types                  | quantization |
|---------|-------|------------------------|--------------|
| x       | any   | float32, float16, int8 | passed by    |
| y       | as x  | as x                   |              |

Source: LiteRT 2.3, densify.cc Prepare, Eval; reference/densify.h Densify.
"""

from __future__ import annotations

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Take the constant's value, which is dense already."""
    return Prepared((node.input(0).shape,), None, evaluate)


def evaluate(data: None, x: Array) -> Array:
    """Source: Densify. No rounding."""
    return x


KERNELS = (
    Kernel("DENSIFY", "float32 -> float32", prepare, (1, 1), sparse=(0,)),
    Kernel("DENSIFY", "float16 -> float16", prepare, (1, 1), sparse=(0,)),
    Kernel("DENSIFY", "int8 -> int8", prepare, (1, 1), sparse=(0,)),
)
