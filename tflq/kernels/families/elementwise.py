"""StableHLO's operators of two inputs of one shape and type: what their kernel files share.

Source: LiteRT 2.3, stablehlo_elementwise.cc ElementwisePrepare; stablehlo_elementwise.h ElementwiseEval.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")
NUMBERS = ("float16", "float32", "float64", *INTEGERS)


def kernels(op: str, function: Callable[[Array, Array], Array], types: tuple[str, ...]) -> tuple[Kernel, ...]:
    """Return the kernels of `function` in the operands' own type."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        a, b = node.input(0), node.input(1)
        node.check(a.shape == b.shape, "shape", b, expected=list(a.shape), got=list(b.shape))
        return Prepared((a.shape,), function, evaluate)

    return tuple(Kernel(op, f"{t} {t} -> {t}", prepare, (1, 1)) for t in types)


def evaluate(function: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """Rounding: one, of the type. Overflow: integers wrap."""
    return np.asarray(function(a, b))
