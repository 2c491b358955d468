"""STABLEHLO_SHIFT_LEFT: a times 2**b, wrapping.

| operand | shape                  | types              |
|---------|------------------------|--------------------|
| a       | any                    | int8, int16, int32 |
| b       | as many elements       | as a               |
| y       | as a                   | as a               |

Shifts by less than 0 or more than 31 are undefined. Not in BUILTIN_REF: the kernel is that of the full resolver.
Source: LiteRT 2.3, stablehlo_shift_left.cc.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Only the shapes."""
    a, b = node.input(0), node.input(1)
    if prod(b.shape) < prod(a.shape):
        raise UndefinedResultError(node.op, "the source reads behind the end of a smaller b")
    return Prepared((a.shape,), None, evaluate)


def evaluate(_: None, a: Array, b: Array) -> Array:
    """Source: EvalImpl, in int32. Overflow: bits beyond the type are lost."""
    shifts = b.reshape(-1)[: a.size].astype(np.int32).reshape(a.shape)
    if ((shifts < 0) | (shifts > 31)).any():
        raise UndefinedResultError("STABLEHLO_SHIFT_LEFT", "a shift outside [0, 31]")
    return np.left_shift(a.astype(np.int32), shifts).astype(a.dtype)


KERNELS = tuple(Kernel("STABLEHLO_SHIFT_LEFT", f"{t} {t} -> {t}", prepare, (1, 1)) for t in ("int8", "int16", "int32"))
