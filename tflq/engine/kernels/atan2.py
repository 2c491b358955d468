"""ATAN2: the angle of the point (x, y).

| operand | shape                  | types                               |
|---------|------------------------|-------------------------------------|
| y       | any                    | float32, float64, float16, bfloat16 |
| x       | as many dimensions     | as y                                |
| angle   | as y                   | as y                                |

The source pairs elements by their place in memory: where x is the larger, its last ones are not read.
Exactness: exact on the same libm (atan2f; atan2 for float64).
Source: LiteRT 2.3, atan2.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod

import numpy as np

from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.narrow_floats import from_bfloat16, to_bfloat16
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.libm import atan2f
from tflq.errors import UndefinedResultError
from tflq.typing import Array


def _preparer(function: Callable[[Array, Array], Array]) -> Callable[[Node, Arithmetic], Prepared]:
    """Return a prepare that binds `function` of flat arrays."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        y, x = node.input(0), node.input(1)
        node.check(len(x.shape) == len(y.shape), "number of dimensions", x, expected=len(y.shape), got=len(x.shape))
        if prod(x.shape) < prod(y.shape):
            raise UndefinedResultError(node.op, "the source reads behind the end of a smaller x")
        return Prepared((y.shape,), function, evaluate)

    return prepare


def evaluate(function: Callable[[Array, Array], Array], y: Array, x: Array) -> Array:
    """Source: Atan2. Rounding: libm's."""
    return function(y.reshape(-1), x.reshape(-1)[: y.size]).reshape(y.shape)


def _half(y: Array, x: Array) -> Array:
    return atan2f(y.astype(np.float32), x.astype(np.float32)).astype(np.float16)


def _brain(y: Array, x: Array) -> Array:
    return to_bfloat16(atan2f(from_bfloat16(y), from_bfloat16(x)))


def _double(y: Array, x: Array) -> Array:
    return np.fromiter(map(math.atan2, y.tolist(), x.tolist()), np.float64, y.size)


_FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "float32": atan2f,
    "float64": _double,
    "float16": _half,
    "bfloat16": _brain,
}

KERNELS = tuple(
    Kernel("ATAN2", f"{t} {t} -> {t}", _preparer(function), (1, 1), exactness=SAME_LIBM)
    for t, function in _FUNCTIONS.items()
)
